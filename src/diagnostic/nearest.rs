//! "Did you mean …?": the candidate nearest to a misspelled word.

/// Bytes of the longest word that is compared: a longer one is no misspelling, and the cost is quadratic.
const MAX_WORD: usize = 40;

/// The candidate nearest to a word by edit distance, if it is near; else the only one that has the word as one of its
/// parts (`head` for `attention_head`).
pub(crate) fn nearest<'w>(word: &str, candidates: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    if word.len() > MAX_WORD {
        return None;
    }
    let written = normalized(word);
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let best = candidates.iter().min_by_key(|candidate| strsim::damerau_levenshtein(&written, candidate));
    if let Some(candidate) = best.filter(|candidate| is_near(candidate, &written)) {
        return Some(candidate);
    }
    let stem = written.trim_end_matches('s');
    let has_part = |candidate: &&&str| stem.len() > 3 && candidate.split('_').any(|part| part == stem);
    let mut having = candidates.iter().filter(has_part);
    having.next().copied().filter(|_| having.next().is_none())
}

/// Whether a word may be a misspelled candidate: at most one edit for every three characters.
pub(crate) fn is_near(candidate: &str, word: &str) -> bool {
    strsim::damerau_levenshtein(candidate, word) <= (word.chars().count() / 3).max(1)
}

/// A word as names are written: lower case, with underscores.
pub(crate) fn normalized(word: &str) -> String {
    word.trim().to_lowercase().replace(['-', ' '], "_")
}

/// "did you mean …? " in front of a help, if there is a candidate.
pub(crate) fn did_you_mean(candidate: Option<&str>, help: &str) -> String {
    match candidate {
        Some(candidate) => format!("did you mean `{candidate}`? {help}"),
        None => help.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_word_has_a_nearest_candidate() {
        let candidates = ["layer", "attention_head", "mlp_channel"];
        assert_eq!(nearest("Layr", candidates), Some("layer"));
        assert_eq!(nearest("heads", candidates), Some("attention_head"));
        assert_eq!(nearest("mlp-channel", candidates), Some("mlp_channel"));
        assert_eq!(nearest("embedding", candidates), None);
        assert_eq!(nearest(&"layer".repeat(9), candidates), None);
    }

    #[test]
    fn a_part_shared_by_two_candidates_means_neither() {
        assert_eq!(nearest("source", ["source_a_x", "source_b_x"]), None);
    }
}
