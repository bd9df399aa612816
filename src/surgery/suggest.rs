//! "Did you mean …?"

use std::fmt::Write;

/// The word that was probably meant: the nearest by edit distance, if it is near, or the only one that has a part of
/// its own near it (`head` for `attention_head`).
pub(super) fn nearest<'w>(word: &str, words: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    // A word much longer than any of ours is none of them misspelt, and distances grow with the square of it.
    if word.len() > 40 {
        return None;
    }
    let written = plain(word);
    let words: Vec<&str> = words.into_iter().collect();
    let allowed = (written.chars().count() / 3).max(1);
    let best = words
        .iter()
        .map(|word| (strsim::damerau_levenshtein(&written, word), *word))
        .min_by_key(|best| best.0);
    if let Some((distance, word)) = best
        && distance <= allowed
    {
        return Some(word);
    }
    let stem = written.trim_end_matches('s');
    let mut parts = words.iter().filter(|word| stem.len() > 3 && word.split('_').any(|part| part == stem));
    parts.next().copied().filter(|_| parts.next().is_none())
}

/// `a`, `b` and `c`, in backticks.
pub(super) fn list<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let words: Vec<&str> = words.into_iter().collect();
    let mut text = String::new();
    for (at, word) in words.iter().enumerate() {
        let before = match at {
            0 => "",
            _ if at + 1 == words.len() => " and ",
            _ => ", ",
        };
        // Writing to a String cannot fail.
        let _ = write!(text, "{before}`{word}`");
    }
    text
}

/// "did you mean …? " in front of a help, if there is something to offer.
pub(super) fn did_you_mean(word: Option<&str>, help: &str) -> String {
    match word {
        Some(word) => format!("did you mean `{word}`? {help}"),
        None => help.to_owned(),
    }
}

fn plain(word: &str) -> String {
    word.trim().to_lowercase().replace(['-', ' '], "_")
}
