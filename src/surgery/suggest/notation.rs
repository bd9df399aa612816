//! Numbers and ids in notations that YAML reads as text.

/// Values of the longest range that a suggestion writes out.
const MAX_IDS: u64 = 32;

/// The number that a text means: `50%`, `1/2`, `0,5`, `1_000`, `2,`.
pub(in crate::surgery) fn number_in_text(text: &str) -> Option<String> {
    let plain = text.trim().trim_end_matches([',', ';']).replace('_', "");
    let parse = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    let number = if let Some(percent) = plain.strip_suffix('%') {
        parse(percent)? / 100.0
    } else if let Some((above, below)) = plain.split_once('/') {
        parse(above)? / parse(below)?
    } else {
        parse(&plain).or_else(|| parse(&plain.replacen(',', ".", 1)))?
    };
    number.is_finite().then(|| number.to_string())
}

/// The ids that a text means: `1 2`, `0,1`, `0-3`, `0..3, 7`.
pub(in crate::surgery) fn ids_in_text(text: &str) -> Option<String> {
    let mut ids: Vec<String> = Vec::new();
    for part in text.split([',', ' ', ';']).filter(|part| !part.is_empty()) {
        let range = ["..", "-", "–", ":"].iter().find_map(|sign| part.split_once(sign));
        let (low, high) = range.unwrap_or((part, part));
        let (low, high): (u64, u64) = (low.parse().ok()?, high.parse().ok()?);
        if high < low || high - low > MAX_IDS || ids.len() as u64 > MAX_IDS {
            return None;
        }
        ids.extend((low..=high).map(|id| id.to_string()));
    }
    (!ids.is_empty()).then(|| ids.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_other_notations_are_understood() {
        for (text, number) in [
            ("50%", "0.5"),
            ("1/2", "0.5"),
            ("0,5", "0.5"),
            ("1_000", "1000"),
            (" 2, ", "2"),
            ("-3 %", "-0.03"),
        ] {
            assert_eq!(number_in_text(text).as_deref(), Some(number), "{text}");
        }
        for text in ["two", "1/0", "1,2,3", "", "%", "inf", "0.5.1"] {
            assert_eq!(number_in_text(text), None, "{text}");
        }
    }

    #[test]
    fn ids_in_other_notations_are_understood() {
        for (text, ids) in
            [("1 2", "1, 2"), ("0,1", "0, 1"), ("0-3", "0, 1, 2, 3"), ("0..2, 7", "0, 1, 2, 7")]
        {
            assert_eq!(ids_in_text(text).as_deref(), Some(ids), "{text}");
        }
        for text in ["all", "3-1", "0-1000", "", "1.5", "-1"] {
            assert_eq!(ids_in_text(text), None, "{text}");
        }
    }
}
