//! [`Matcher`]: one pattern, ready for many keys.

use std::sync::OnceLock;

use memchr::memmem::Finder;

use super::capture::Program;
use super::{Captures, Part, Pattern, places};

/// A pattern taken apart: the text that every match begins with, the one that it ends with, and what is between. Most
/// keys are told by the ends; most patterns have nothing but texts between their `*`, which are then found one after the
/// other.
#[derive(Debug)]
pub struct Matcher {
    head: String,
    tail: String,
    body: Body,
    can_capture: bool,
    program: OnceLock<Program>,
}

/// What a pattern has between its ends.
#[derive(Debug)]
enum Body {
    /// Nothing: no wildcard.
    Nothing,
    /// `*` before, between and behind these texts, some of which may be empty.
    Texts(Vec<Finder<'static>>),
    /// Anything else, in which this text must occur.
    Parts(Vec<Part>, Option<Box<Finder<'static>>>),
}

impl Matcher {
    /// Takes a pattern apart.
    #[must_use]
    pub fn new(pattern: &Pattern) -> Self {
        let mut parts = pattern.parts();
        let head = match parts.first_mut() {
            Some(Part::Text(text)) => std::mem::take(text),
            _ => String::new(),
        };
        if matches!(parts.first(), Some(Part::Text(_))) {
            parts.remove(0);
        }
        let tail = match parts.pop() {
            Some(Part::Text(text)) => text,
            last => {
                parts.extend(last);
                String::new()
            }
        };
        let can_capture = pattern.braced_star().is_none();
        Self { head, tail, body: Body::new(parts), can_capture, program: OnceLock::new() }
    }

    /// What every matching key begins with.
    #[must_use]
    pub fn head(&self) -> &str {
        &self.head
    }

    /// Whether the whole key matches.
    #[must_use]
    pub fn matches(&self, key: &str) -> bool {
        let Some(inner) = self.inner(key) else { return false };
        match &self.body {
            Body::Nothing => inner.is_empty(),
            Body::Texts(texts) => find_all(texts, inner, |_| ()),
            Body::Parts(parts, needle) => {
                needle.as_ref().is_none_or(|needle| needle.find(inner.as_bytes()).is_some())
                    && places::matches(parts, inner)
            }
        }
    }

    /// What each `*` matched: from the left, each takes the shortest text that lets the rest match, and of
    /// alternatives the first that does. `None` when the key does not match, when a `*` stands in braces, or when
    /// a pattern of many alternatives and a key are both so long (thousands of characters) that the search would not
    /// be cheap.
    #[must_use]
    pub fn captures<'k>(&self, key: &'k str) -> Option<Captures<'k>> {
        let inner = self.inner(key).filter(|_| self.can_capture)?;
        let found = match &self.body {
            Body::Nothing => inner.is_empty().then(Vec::new),
            Body::Texts(texts) => {
                let mut found = Vec::with_capacity(texts.len() + 1);
                find_all(texts, inner, |text| found.push(text)).then_some(found)
            }
            Body::Parts(parts, _) => self.program.get_or_init(|| Program::compile(parts)).captures(inner),
        };
        found.map(Captures)
    }

    /// A key without the ends that it has in common with every match.
    fn inner<'k>(&self, key: &'k str) -> Option<&'k str> {
        key.strip_prefix(self.head.as_str())?.strip_suffix(self.tail.as_str())
    }
}

impl Body {
    fn new(parts: Vec<Part>) -> Self {
        if parts.is_empty() {
            return Self::Nothing;
        }
        let finder = |text: &str| Finder::new(text).into_owned();
        if parts.iter().all(|part| matches!(part, Part::Star | Part::Text(_))) {
            let mut between = "";
            let mut texts = Vec::new();
            // The parts begin and end with a star.
            for part in parts.iter().skip(1) {
                match part {
                    Part::Text(text) => between = text,
                    _ => texts.push(finder(std::mem::take(&mut between))),
                }
            }
            return Self::Texts(texts);
        }
        let texts = parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text),
            _ => None,
        });
        let needle = texts.max_by_key(|text| text.len()).map(|text| Box::new(finder(text)));
        Self::Parts(parts, needle)
    }
}

/// Finds texts one after the other, each as early as it can be, and tells what is before, between and behind them.
fn find_all<'k>(texts: &[Finder<'_>], inner: &'k str, mut tell: impl FnMut(&'k str)) -> bool {
    let mut rest = inner;
    for text in texts {
        let found = text.find(rest.as_bytes()).and_then(|at| rest.split_at_checked(at));
        let Some((before, after)) = found else { return false };
        tell(before);
        rest = after.get(text.needle().len()..).unwrap_or_default();
    }
    tell(rest);
    true
}
