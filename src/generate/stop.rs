//! [`StopStrings`]: finds stop strings in a text that arrives in pieces.

/// Ends a text before the first stop string. A tail that may be the beginning of a stop string is held back.
#[derive(Debug, Clone, Default)]
pub(super) struct StopStrings {
    strings: Vec<String>,
    held: String,
    stopped: bool,
}

impl StopStrings {
    /// Stops before the first of `strings`; empty strings are ignored.
    #[must_use]
    pub(super) fn new(strings: Vec<String>) -> Self {
        let strings = strings.into_iter().filter(|string| !string.is_empty()).collect();
        Self { strings, held: String::new(), stopped: false }
    }

    /// Adds a piece; returns the text that can be shown now, which is empty after a stop string.
    pub(super) fn push(&mut self, piece: &str) -> String {
        if self.stopped {
            return String::new();
        }
        self.held.push_str(piece);
        if let Some(start) = self.strings.iter().filter_map(|string| self.held.find(string.as_str())).min() {
            self.stopped = true;
            self.held.truncate(start);
            return std::mem::take(&mut self.held);
        }
        let keep = self.strings.iter().map(|string| overlap(&self.held, string)).max().unwrap_or(0);
        let tail = self.held.split_off(self.held.len() - keep);
        std::mem::replace(&mut self.held, tail)
    }

    /// Whether a stop string was found.
    #[must_use]
    pub(super) fn stopped(&self) -> bool {
        self.stopped
    }

    /// Ends the text; returns what was held back.
    pub(super) fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

/// Length in bytes of the longest proper prefix of `string` that `text` ends with.
fn overlap(text: &str, string: &str) -> usize {
    string.char_indices().map(|(end, _)| end).rev().find(|end| text.ends_with(&string[..*end])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(stops: &[&str], pieces: &[&str], expected: &[&str], stopped: bool) {
        let mut watch = StopStrings::new(stops.iter().map(|stop| (*stop).to_owned()).collect());
        let shown: Vec<String> = pieces.iter().map(|piece| watch.push(piece)).collect();
        assert_eq!(shown, expected);
        assert_eq!(watch.stopped(), stopped);
    }

    #[test]
    fn without_stop_strings_pieces_pass_unchanged() {
        check(&[], &["a", "", "bc"], &["a", "", "bc"], false);
        check(&[""], &["a", "bc"], &["a", "bc"], false);
    }

    #[test]
    fn the_text_ends_before_a_stop_string() {
        check(&["END"], &["one END two", "three"], &["one ", ""], true);
    }

    #[test]
    fn a_stop_string_may_span_pieces() {
        check(&["###"], &["a#", "#", "# b"], &["a", "", ""], true);
    }

    #[test]
    fn held_text_is_shown_once_it_cannot_match() {
        check(&["###"], &["a#", "#b", "#"], &["a", "##b", ""], false);
    }

    #[test]
    fn the_earliest_stop_string_wins() {
        check(&["late", "y"], &["may late"], &["ma"], true);
    }

    #[test]
    fn characters_of_several_bytes_are_never_split() {
        check(&["日本"], &["x日", "本y"], &["x", ""], true);
        check(&["é!"], &["caf", "é", "?"], &["caf", "", "é?"], false);
    }

    #[test]
    fn finishing_returns_the_held_tail() {
        let mut watch = StopStrings::new(vec!["stop".to_owned()]);
        assert_eq!(watch.push("do not st"), "do not ");
        assert_eq!(watch.finish(), "st");
    }

    proptest! {
        #[test]
        fn pieces_add_up_to_the_text_before_the_stop_string(
            text in "[ab日]{0,20}",
            stops in prop::collection::vec("[ab日]{1,3}", 0..3),
            cuts in prop::collection::vec(0usize..21, 0..6),
        ) {
            let chars: Vec<char> = text.chars().collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(chars.len())).collect();
            cuts.extend([0, chars.len()]);
            cuts.sort_unstable();
            let mut watch = StopStrings::new(stops.clone());
            let mut shown = String::new();
            for pair in cuts.windows(2) {
                shown += &watch.push(&chars[pair[0]..pair[1]].iter().collect::<String>());
            }
            shown += &watch.finish();
            let whole = stops.iter().any(|stop| text.contains(stop.as_str()));
            prop_assert_eq!(watch.stopped(), whole);
            prop_assert!(text.starts_with(&shown));
            if whole {
                prop_assert!(stops.iter().any(|stop| text[shown.len()..].starts_with(stop.as_str())));
                prop_assert!(!stops.iter().any(|stop| shown.contains(stop.as_str())));
            } else {
                prop_assert_eq!(shown, text);
            }
        }
    }
}
