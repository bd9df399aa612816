//! [`Matcher`]: one pattern, ready for many keys.

use std::sync::OnceLock;

use memchr::memmem::Finder;

use super::capture::Program;
use super::glob::Pattern;
use super::part::Part;
use super::places;
use super::template::Captures;

/// A pattern taken apart: the text that every match begins with, the text that it ends with, and what is between. The
/// ends decide for most keys. Most patterns have only text between their `*`, which is found from left to right.
#[derive(Debug)]
pub struct Matcher {
    head: String,
    tail: String,
    body: Body,
    can_capture: bool,
    program: OnceLock<Program>,
}

/// What is between a pattern's ends.
#[derive(Debug)]
enum Body {
    /// Nothing: no wildcard.
    Nothing,
    /// `*` before, between and after these texts; some may be empty.
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

    /// The text that every matching key begins with.
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

    /// What each `*` captures: from the left, the shortest text that lets the rest match, with the first alternatives
    /// that do. `None` if the key does not match, if a `*` is within braces, or if a pattern of many alternatives and a key
    /// are both so long (thousands of characters) that the search would be expensive.
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

    /// A key without the ends that every match has.
    fn inner<'k>(&self, key: &'k str) -> Option<&'k str> {
        key.strip_prefix(self.head.as_str())?.strip_suffix(self.tail.as_str())
    }
}

impl Pattern {
    /// Whether the whole key matches. For many keys, use a [`Matcher`].
    #[must_use]
    pub fn matches(&self, key: &str) -> bool {
        Matcher::new(self).matches(key)
    }

    /// What each `*` captures, as by [`Matcher::captures`].
    #[must_use]
    pub fn captures<'k>(&self, key: &'k str) -> Option<Captures<'k>> {
        Matcher::new(self).captures(key)
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

/// Finds texts from left to right, each as early as possible, and passes on what is before, between and after them.
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
