//! Help for a pattern that begins with `*`: its words are compared with the parts of keys, wherever they are.

use std::collections::BTreeSet;
use std::ops::Range;

use super::components::components;
use super::key_names::{KeyNames, MAX_COMPARED_LENGTH, MAX_TEMPLATES};
use crate::diagnostic::{is_near as is_misspelled, words};
use crate::surgery::Pattern;

/// Maximum number of parts that are tried in place of one word.
const MAX_CANDIDATES: usize = 4;
/// With more unknown words nothing is guessed: edit distances take time.
const MAX_UNKNOWN_WORDS: usize = 3;
/// Longer words are not compared.
const MAX_WORD_LENGTH: usize = 64;

/// Which word of a pattern that begins with `*` no key has, what is near it, and the pattern with that in its place.
pub(super) fn misspelled(names: &KeyNames<'_>, pattern: &str) -> Option<Vec<String>> {
    if !pattern.starts_with('*') || pattern.len() > MAX_COMPARED_LENGTH {
        return None;
    }
    let parts = parts(names)?;
    let wrong: Vec<Range<usize>> =
        words_of(pattern).into_iter().filter(|word| !is_known(&parts, pattern, word)).collect();
    if wrong.len() > MAX_UNKNOWN_WORDS || wrong.iter().any(|word| word.len() > MAX_WORD_LENGTH) {
        return None;
    }
    let Some(first) = wrong.first() else {
        // All of it is known, but there is nothing before it that the star could match.
        let rest = pattern.strip_prefix("*.")?;
        return match matched(names, rest)? {
            0 => None,
            n => Some(vec![format!(
                "`*.` needs a part before it; without it the pattern would match {}: `{rest}`",
                words::count(n, "key")
            )]),
        };
    };
    let near: Vec<Vec<&str>> = wrong
        .iter()
        .map(|word| {
            let word = &pattern[word.clone()];
            let near = |part: &&str| is_near(part, word);
            by_nearness(&parts, word).into_iter().filter(near).take(MAX_CANDIDATES).collect()
        })
        .collect();
    let word = &pattern[first.clone()];
    let found = match near.first() {
        Some(near) if !near.is_empty() => near.clone(),
        _ => by_nearness(&parts, word),
    };
    if found.is_empty() {
        return None;
    }
    let mut help = vec![format!("no part of a key is named `{word}`; found {}", words::names(&found))];
    let meant = (0..MAX_CANDIDATES).find_map(|choice| {
        // A word with fewer candidates keeps its last one.
        let chosen: Option<Vec<&str>> =
            near.iter().map(|near| near.get(choice).or(near.last()).copied()).collect();
        let text = replaced(pattern, &wrong, &chosen?);
        matched(names, &text).filter(|&n| n > 0).map(|n| (text, n))
    });
    if let Some((text, n)) = meant {
        help.push(format!("nearest: `{text}`, which would match {}", words::count(n, "key")));
    }
    Some(help)
}

fn matched(names: &KeyNames<'_>, pattern: &str) -> Option<usize> {
    Pattern::parse(pattern).ok().map(|pattern| names.count(&pattern))
}

/// The distinct dotted parts of keys, without numbers; `None` if there are too many kinds of keys to know all of them.
fn parts<'v>(names: &'v KeyNames<'_>) -> Option<BTreeSet<&'v str>> {
    let templates = names.templates();
    let all = || templates.iter().flat_map(|name| name.split('.')).filter(|part| *part != "*").collect();
    (templates.len() < MAX_TEMPLATES).then(all)
}

fn by_nearness<'p>(parts: &BTreeSet<&'p str>, word: &str) -> Vec<&'p str> {
    let mut parts: Vec<&str> = parts.iter().copied().filter(|part| part.len() <= MAX_WORD_LENGTH).collect();
    parts.sort_by_cached_key(|part| (!holds(part, word), strsim::damerau_levenshtein(part, word)));
    parts
}

/// Whether one of the two is a piece of the other: `attn` of `self_attn`.
fn holds(part: &str, word: &str) -> bool {
    part.len().min(word.len()) > 2 && (part.contains(word) || word.contains(part))
}

fn is_near(part: &str, word: &str) -> bool {
    let (short, long) = (part.len().min(word.len()), part.len().max(word.len()));
    // `attn` is `self_attn` rather than `post_attn_layernorm`.
    (holds(part, word) && short * 5 >= long * 2) || is_misspelled(part, word)
}

/// Whether any key has the word as a part, or within one where the pattern leaves that open.
fn is_known(parts: &BTreeSet<&str>, pattern: &str, word: &Range<usize>) -> bool {
    let text = &pattern[word.clone()];
    let open_before = pattern[..word.start].ends_with('*');
    let open_behind = pattern[word.end..].starts_with('*');
    match (open_before, open_behind) {
        (false, false) => parts.contains(text),
        (true, false) => parts.iter().any(|part| part.ends_with(text)),
        (false, true) => parts.iter().any(|part| part.starts_with(text)),
        (true, true) => parts.iter().any(|part| part.contains(text)),
    }
}

/// The byte ranges of the words of a pattern: the texts between stars and dots, without numbers. Parts with
/// alternatives, classes, `?` or escapes are left out.
fn words_of(pattern: &str) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    for (start, end) in components(pattern) {
        let component = &pattern[start..end];
        if component.contains(['{', '[', ']', '}', '?', '\\']) {
            continue;
        }
        let mut at = start;
        for word in component.split('*') {
            if word.contains(|c: char| !c.is_ascii_digit()) {
                words.push(at..at + word.len());
            }
            at += word.len() + 1;
        }
    }
    words
}

/// The pattern with other texts in place of these pieces of it.
fn replaced(pattern: &str, pieces: &[Range<usize>], texts: &[&str]) -> String {
    let (mut out, mut done) = (String::with_capacity(pattern.len()), 0);
    for (piece, text) in pieces.iter().zip(texts) {
        out.push_str(&pattern[done..piece.start]);
        out.push_str(text);
        done = piece.end;
    }
    out + &pattern[done..]
}
