//! Matching a pattern's parts with a key: for each part, all places where it can end, given those where it can begin.
//! No place is tried twice, so the time is at most the product of both lengths.

use std::ops::RangeInclusive;

use memchr::memmem::Finder;

use super::part::Part;

/// Whether parts match a whole text.
pub(super) fn matches(parts: &[Part], text: &str) -> bool {
    let mut start = Places::none(text);
    start.add(0);
    run(parts, text, start).has(text.len())
}

/// The places where parts can end that begin at `now`.
fn run(parts: &[Part], text: &str, mut now: Places) -> Places {
    let mut next = Places::none(text);
    let mut rest = parts;
    while let [part, after @ ..] = rest {
        rest = after;
        next.clear();
        match (part, after) {
            (Part::Star, [Part::Text(wanted), after @ ..]) => {
                // After another star, the first occurrence reaches whatever any occurrence does.
                let first = after.first() == Some(&Part::Star);
                find(wanted, text, &now, first, &mut next);
                rest = after;
            }
            (Part::Star, [sign @ (Part::One | Part::Class { .. }), after @ ..])
                if after.first() == Some(&Part::Star) =>
            {
                let reached = now.first().and_then(|first| text.get(first..));
                let found = reached.and_then(|text| text.char_indices().find(|(_, c)| sign.accepts(*c)));
                if let (Some(first), Some((at, c))) = (now.first(), found) {
                    next.add(first + at + c.len_utf8());
                }
                rest = after;
            }
            _ => step(part, text, &now, &mut next),
        }
        std::mem::swap(&mut now, &mut next);
        if now.first().is_none() {
            break;
        }
    }
    now
}

/// Adds the places where one part can end that begins at `now`.
fn step(part: &Part, text: &str, now: &Places, next: &mut Places) {
    match part {
        Part::Star => {
            if let Some(first) = now.first() {
                if text.is_ascii() {
                    next.fill(first, text.len());
                } else {
                    let between = |at: &usize| text.is_char_boundary(*at);
                    (first..=text.len()).filter(between).for_each(|at| next.add(at));
                }
            }
        }
        Part::Text(wanted) => {
            let wanted = wanted.as_bytes();
            for at in now.iter().filter(|&at| text.as_bytes()[at..].starts_with(wanted)) {
                next.add(at + wanted.len());
            }
        }
        Part::One | Part::Class { .. } => {
            for at in now.iter() {
                if let Some(sign) = text[at..].chars().next().filter(|&sign| part.accepts(sign)) {
                    next.add(at + sign.len_utf8());
                }
            }
        }
        Part::Numbers(numbers) => now.iter().for_each(|at| number(numbers, text, at, next)),
        Part::Either(alternatives) => {
            for alternative in alternatives {
                match &alternative[..] {
                    [part] => step(part, text, now, next),
                    parts => next.join(&run(parts, text, now.clone())),
                }
            }
        }
    }
}

/// Adds the ends of `*` and a text: after each of its occurrences, or only after the first.
fn find(wanted: &str, text: &str, now: &Places, only_first: bool, next: &mut Places) {
    let finder = Finder::new(wanted);
    let mut from = now.first();
    while let Some(at) = from
        && let Some(found) = text.as_bytes().get(at..).and_then(|rest| finder.find(rest))
    {
        next.add(at + found + wanted.len());
        from = (!only_first).then_some(at + found + 1);
    }
}

/// Adds the ends of a number without leading zeros.
fn number(numbers: &RangeInclusive<u64>, text: &str, at: usize, next: &mut Places) {
    let mut value = 0_u64;
    for (length, &byte) in (1..).zip(&text.as_bytes()[at..]) {
        let digit = match byte {
            b'0'..=b'9' if length == 1 || value > 0 => u64::from(byte - b'0'),
            _ => return,
        };
        value = match value.checked_mul(10).and_then(|value| value.checked_add(digit)) {
            Some(value) if value <= *numbers.end() => value,
            _ => return,
        };
        if numbers.contains(&value) {
            next.add(at + length);
        }
    }
}

/// A set of places between the characters of a text, both ends included.
#[derive(Clone)]
struct Places(Vec<u64>);

impl Places {
    fn none(text: &str) -> Self {
        Self(vec![0; text.len() / 64 + 1])
    }

    fn clear(&mut self) {
        self.0.fill(0);
    }

    fn add(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }

    /// Adds every place from `first` to `last`.
    fn fill(&mut self, first: usize, last: usize) {
        for (word, bits) in self.0.iter_mut().enumerate().take(last / 64 + 1).skip(first / 64) {
            let from = if word == first / 64 { u64::MAX << (first % 64) } else { u64::MAX };
            let to = if word == last / 64 { u64::MAX >> (63 - last % 64) } else { u64::MAX };
            *bits |= from & to;
        }
    }

    fn has(&self, at: usize) -> bool {
        self.0[at / 64] >> (at % 64) & 1 == 1
    }

    fn join(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine |= theirs);
    }

    fn first(&self) -> Option<usize> {
        self.iter().next()
    }

    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(word, &bits)| {
            let rest = |bits: &u64| Some(bits & (bits - 1)).filter(|&rest| rest != 0);
            std::iter::successors(Some(bits).filter(|&bits| bits != 0), rest)
                .map(move |bits| word * 64 + bits.trailing_zeros() as usize)
        })
    }
}
