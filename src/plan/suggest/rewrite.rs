//! Rewrites a pattern that matches nothing as a glob over whole keys: module names, regular expressions, array indices
//! and folded names.

/// A rewritten pattern, and why it may have been meant.
pub(super) struct Rewrite {
    /// The other pattern.
    pub text: String,
    /// What differs, as the beginning of a sentence that ends with the number of keys and the pattern.
    pub why: &'static str,
}

const PREFIX: &str = "with another prefix it matches";
const CASE: &str = "keys are lowercase; in lowercase it would match";
const GLOB: &str = "patterns are globs; as one it would match";
const WHOLE: &str = "a pattern must match the whole key; completed, it matches";

/// Prefixes that writers of checkpoints disagree about.
const PREFIXES: [(&str, &str); 8] = [
    ("", "language_model."),
    ("language_model.", ""),
    ("model.", "model.language_model."),
    ("model.language_model.", "model."),
    ("language_model.model.", "model.language_model."),
    ("model.language_model.", "language_model.model."),
    ("", "model."),
    ("model.", ""),
];

/// The patterns that may have been meant, likeliest first.
pub(super) fn rewrites(pattern: &str) -> Vec<Rewrite> {
    let plain = as_glob(pattern);
    let notation = if plain == pattern { None } else { Some(GLOB) };
    let mut found: Vec<Rewrite> = Vec::new();
    let mut add = |text: String, why: &'static str| {
        if text != pattern && !found.iter().any(|other| other.text == text) {
            found.push(Rewrite { text, why: notation.unwrap_or(why) });
        }
    };
    add(plain.clone(), GLOB);
    add(plain.to_lowercase(), CASE);
    let prefixed: Vec<String> = PREFIXES
        .iter()
        .filter_map(|(from, to)| plain.strip_prefix(from).map(|rest| format!("{to}{rest}")))
        .collect();
    for text in &prefixed {
        add(text.clone(), PREFIX);
    }
    for text in std::iter::once(&plain).chain(&prefixed) {
        add(format!("{text}.weight"), WHOLE);
        add(format!("{text}.*"), WHOLE);
    }
    if !plain.starts_with('*') {
        for end in ["", ".weight", ".*"] {
            add(format!("*.{plain}{end}"), WHOLE);
        }
    }
    found
}

/// The pattern without the syntax of other notations; a glob is unchanged.
fn as_glob(pattern: &str) -> String {
    // Word processors use typographic quotes.
    let mut text = pattern.trim_matches(['“', '”', '„', '‘', '’']).to_owned();
    // Anchors, escapes, alternatives and quantifiers show a regular expression.
    if text.starts_with('^') || text.ends_with('$') || text.contains(['\\', '|', '+']) {
        text = text.trim_start_matches('^').trim_end_matches('$').to_owned();
        // An escaped dot is set aside until every other dot is replaced.
        for (from, to) in [
            ("\\.", "\u{0}"),
            ("\\d+", "*"),
            ("\\d*", "*"),
            ("\\d", "?"),
            ("\\w+", "*"),
            ("[0-9]+", "*"),
            ("[^.]+", "*"),
            (".+", "*"),
            (".*", "*"),
            ("\u{0}", "."),
        ] {
            text = text.replace(from, to);
        }
        text = groups(&text);
    }
    let text = spread(&text.replace("{ ", "{").replace(" }", "}").replace(", ", ","));
    // Numbers between dots need braces: `layers.0-3.mlp`, `layers.0,1.mlp`.
    let braced = |part: &str| match range(part) {
        Some((low, high)) => format!("{{{low}..{high}}}"),
        None if part.contains(',') && part.split(',').all(number) => format!("{{{part}}}"),
        None => part.to_owned(),
    };
    if text.contains(['{', '[']) { text } else { text.split('.').map(braced).collect::<Vec<_>>().join(".") }
}

/// `(a|b)` as `{a,b}`.
fn groups(text: &str) -> String {
    let Some((before, rest)) = text.split_once('(') else { return text.to_owned() };
    match rest.split_once(')') {
        Some((inside, after)) if inside.contains('|') => {
            let inside = inside.trim_start_matches("?:").replace('|', ",");
            format!("{before}{{{inside}}}{}", groups(after))
        }
        _ => text.to_owned(),
    }
}

/// Numbers in brackets as globs: `{0-3}`, `{0–3}`, `[0..3]` and `[10-15]` as `{0..3}`, `layers[1]` as `layers.1`.
fn spread(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find(['[', '{']) {
        let (before, inside) = rest.split_at(open);
        let (sign, close) = if inside.starts_with('[') { ('[', ']') } else { ('{', '}') };
        let Some(end) = inside.find(close) else { break };
        let body = &inside[1..end];
        written.push_str(before);
        match sign {
            '[' if number(body) && before.ends_with(|c: char| c.is_alphabetic()) => {
                written.push('.');
                written.push_str(body);
            }
            '[' => match range(body) {
                Some((low, high)) => written.extend(["{", low, "..", high, "}"]),
                None => written.push_str(&inside[..=end]),
            },
            _ => {
                let parts = body.split(',').map(|part| match range(part) {
                    Some((low, high)) => format!("{low}..{high}"),
                    None => part.to_owned(),
                });
                written.extend(["{", &parts.collect::<Vec<_>>().join(","), "}"]);
            }
        }
        rest = &inside[end + 1..];
    }
    written.push_str(rest);
    written
}

/// The two numbers of a text that looks like a range.
pub(in crate::plan) fn range(text: &str) -> Option<(&str, &str)> {
    let (low, high) = ["..", "–", "-", ":"]
        .iter()
        .find_map(|sign| text.split_once(sign))
        .map(|(a, b)| (a.trim(), b.trim()))?;
    (number(low) && number(high)).then_some((low, high))
}

fn number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, glob: &str) {
        assert_eq!(as_glob(pattern), glob);
    }

    #[test]
    fn other_notations_become_globs() {
        check(r"^model\.layers\.\d+\.mlp\..*$", "model.layers.*.mlp.*");
        check("model.layers.(0|1).mlp", "model.layers.{0,1}.mlp");
        check("model.layers.{0–3}.mlp", "model.layers.{0..3}.mlp");
        check("model.layers.{0-3,7}.mlp", "model.layers.{0..3,7}.mlp");
        check("model.layers[1].mlp", "model.layers.1.mlp");
        check("model.layers.[10-15].mlp", "model.layers.{10..15}.mlp");
        check("model.layers.{ 0, 1 }.mlp", "model.layers.{0,1}.mlp");
        check("“model.layers.*”", "model.layers.*");
        check("model.layers.0-3.mlp.*", "model.layers.{0..3}.mlp.*");
        check("model.layers.0,2.mlp.*", "model.layers.{0,2}.mlp.*");
    }

    #[test]
    fn globs_stay_as_they_are() {
        for glob in ["model.layers.*.mlp.{up,gate}_proj.weight", "a.[!x]b.{0..3}", "[", "{", "*"] {
            check(glob, glob);
        }
    }

    #[test]
    fn nothing_is_offered_twice_or_as_it_was() {
        let texts: Vec<String> = rewrites("model.norm").into_iter().map(|rewrite| rewrite.text).collect();
        let mut distinct = texts.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), texts.len());
        assert!(!texts.contains(&"model.norm".to_owned()), "{texts:?}");
        assert!(texts.contains(&"model.norm.weight".to_owned()), "{texts:?}");
    }
}
