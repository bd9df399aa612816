//! The dotted components of patterns.

/// The byte ranges of a pattern's dotted components; dots inside brackets and braces do not separate.
pub(super) fn components(pattern: &str) -> Vec<(usize, usize)> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, c) in pattern.char_indices() {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            '.' if depth == 0 => {
                parts.push((start, at));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push((start, pattern.len()));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_in_classes_and_alternatives_do_not_separate() {
        let text = "a.{b.c,d}.[.x].e";
        let parts: Vec<&str> = components(text).into_iter().map(|(a, b)| &text[a..b]).collect();
        assert_eq!(parts, ["a", "{b.c,d}", "[.x]", "e"]);
    }
}
