//! Help for a pattern that matches nothing: where it dies, what stands there instead, what it may have meant.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::draft::{Context, Draft};
use super::parts::misspelt;
use super::rewrite::rewrites;
use super::scope::Scope;
pub(super) use super::vocabulary::Vocabulary;
use super::vocabulary::{LONGEST, nearest};
use crate::checkpoint::{TensorIndex, Weights, models_beside_strays};
use crate::diagnostic::{Code, Diagnostic, words};
use crate::surgery::{Matcher, Operation, Pattern, Spanned, SurgeryFile};

/// So many keys are looked at for what stands in place of a component, at most.
const LOOKED_AT: usize = 4096;
/// So many keys are searched at most for what a pattern may have been meant as; so many meanings are tried at least.
const SEARCHED: usize = 1 << 20;
const MEANT: usize = 8;

/// Reports an operation whose pattern matches nothing, or whose excludes leave nothing.
pub(super) fn no_match(context: &Context<'_>, operation: &Operation, scope: &Scope, draft: &mut Draft) {
    if scope.excluded > 0 {
        let message =
            format!("`exclude` leaves none of the {} that the pattern matches", keys(scope.excluded));
        let diagnostic =
            Diagnostic::new(Code::NoMatch, message).help("narrow `exclude`, or remove the operation");
        let diagnostic = match operation.exclude.first() {
            Some(exclude) => exclude.label_at_use(diagnostic, ""),
            None => diagnostic,
        };
        draft.say(operation.pattern.label_at_use(diagnostic, "matches"));
        return;
    }
    draft.say(nothing(context.vocabulary, &operation.pattern));
}

fn nothing(vocabulary: &Vocabulary<'_>, pattern: &Spanned<Pattern>) -> Diagnostic {
    let text = pattern.value.as_str();
    let diagnostic = Diagnostic::new(Code::NoMatch, format!("`{text}` matches no tensor"));
    pattern.label_at_use(diagnostic.help(help(vocabulary, text)), "")
}

/// Reports the patterns of operations that could not be read whole, where they match nothing.
pub(super) fn fragments(file: &SurgeryFile, index: &TensorIndex) -> Vec<Diagnostic> {
    let vocabulary = Vocabulary::new(index);
    let patterns: Vec<_> = file.fragments.iter().filter_map(|fragment| fragment.pattern.as_ref()).collect();
    let dead = patterns.par_iter().filter(|pattern| !vocabulary.any(&pattern.value));
    dead.map(|pattern| nothing(&vocabulary, pattern)).collect()
}

fn keys(n: usize) -> String {
    words::count(n, "key")
}

/// Where a pattern dies and what it may have meant.
pub(super) fn help(vocabulary: &Vocabulary<'_>, pattern: &str) -> String {
    help_with(vocabulary, pattern, "`mlxcel surgery keys --model DIR` lists the keys")
}

/// The same for a donor that was opened as `path`.
pub(super) fn donor_help(donor: &Weights, pattern: &str) -> String {
    let keys = donor.index.entries();
    if keys.iter().any(|(key, _)| key.as_str().contains(".lora_")) {
        return "the donor is a LoRA adapter: its factors have keys of their own; merge it into full weights, or into one \
                delta a tensor, and name that"
            .into();
    }
    if let Some(meant) = models_beside_strays(&donor.path) {
        return format!(
            "the donor is read from a file that stands beside models: name the file itself if that is meant; {meant}"
        );
    }
    let list = format!("`mlxcel surgery keys --donor {}` lists its keys", donor.path.display());
    help_with(&Vocabulary::new(&donor.index), pattern, &list)
}

fn help_with(vocabulary: &Vocabulary<'_>, pattern: &str, list: &str) -> String {
    if vocabulary.index.entries().is_empty() {
        return "the checkpoint has no tensor at all".into();
    }
    if let Some(help) = otherwise(vocabulary, pattern) {
        return help;
    }
    let mut parts = misspelt(vocabulary, pattern).unwrap_or_else(|| {
        let mut parts = Vec::from_iter(where_it_dies(vocabulary, pattern));
        let near = nearest(vocabulary, pattern);
        if !near.is_empty() {
            parts.push(format!("nearest: {}", words::names(&near)));
        }
        parts
    });
    parts.push(list.to_owned());
    parts.join("; ")
}

/// The pattern as it may have been meant, where that would match.
fn otherwise(vocabulary: &Vocabulary<'_>, pattern: &str) -> Option<String> {
    if pattern.len() > LONGEST {
        return None;
    }
    // In a large checkpoint only the likeliest are tried.
    let most = (SEARCHED / vocabulary.index.entries().len().max(1)).max(MEANT);
    rewrites(pattern).into_iter().take(most).find_map(|rewrite| {
        let parsed = Pattern::parse(&rewrite.text).ok()?;
        match vocabulary.count(&parsed) {
            0 => None,
            n => Some(format!("{} {}: `{}`", rewrite.why, keys(n), rewrite.text)),
        }
    })
}

/// "after `model.layers.*` comes no `attn` but `self_attn` and `mlp`".
fn where_it_dies(vocabulary: &Vocabulary<'_>, pattern: &str) -> Option<String> {
    let components = components(pattern);
    let alive = |&end: &usize| {
        let prefix = format!("{}.*", &pattern[..components[end].1]);
        Pattern::parse(&prefix).is_ok_and(|prefix| vocabulary.any(&prefix))
    };
    // The first component after which nothing follows; if something follows all of them, it is the last that fails.
    let dead = (0..components.len().checked_sub(1)?).find(|end| !alive(end)).unwrap_or(components.len() - 1);
    let (start, end) = components[dead];
    let component = &pattern[start..end];
    let before = pattern[..start].trim_end_matches('.');
    if before == "*" {
        // It stands for any number of components, so nothing in particular comes after it.
        return Some(format!("no key ends with `{}`", &pattern[start..]));
    }
    let mut standing = standing_after(vocabulary, before)?;
    standing.sort_by_cached_key(|name| (!name.contains(component), strsim::levenshtein(name, component)));
    let instead = if standing.iter().all(|name| name.parse::<u64>().is_ok()) {
        let mut numbers: Vec<u64> = standing.iter().filter_map(|name| name.parse().ok()).collect();
        numbers.sort_unstable();
        words::ranges(&numbers)
    } else {
        words::names(&standing)
    };
    if standing.iter().any(|name| name == component) {
        return Some(match before {
            "" => format!("keys begin with `{component}`, but none is only that"),
            _ => format!("`{component}` stands after `{before}`, but not as the last part of a key"),
        });
    }
    Some(match before {
        "" => format!("no key begins with `{component}`; keys begin with {instead}"),
        _ => format!("after `{before}` comes no `{component}` but {instead}"),
    })
}

/// The components that stand after a prefix, in the keys that it matches.
fn standing_after(vocabulary: &Vocabulary<'_>, before: &str) -> Option<Vec<String>> {
    let first = |rest: &str| rest.split('.').next().unwrap_or_default().to_owned();
    let mut found = BTreeSet::new();
    if before.contains(['*', '?', '[', '{', '\\']) {
        let prefix = Pattern::parse(&format!("{before}.*")).ok()?;
        let matcher = Matcher::new(&prefix);
        for key in vocabulary.keys(&matcher).filter(|key| matcher.matches(key)).take(LOOKED_AT) {
            found.extend(matcher.captures(key).and_then(|captures| captures.0.last().map(|c| first(c))));
        }
    } else {
        // Without wildcards the keys are one run in the index: from each component it is one jump to the next.
        let prefix = if before.is_empty() { String::new() } else { format!("{before}.") };
        let index = vocabulary.index;
        let run = index.with_prefix(&prefix);
        let mut at = run.start;
        while at < run.end && found.len() < LOOKED_AT {
            let component = first(&index.entries()[at].0.as_str()[prefix.len()..]);
            at = index.with_prefix(&format!("{prefix}{component}.")).end.max(at + 1);
            found.insert(component);
        }
    }
    (!found.is_empty()).then(|| found.into_iter().collect())
}

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
    use crate::checkpoint::{Dtype, Key, Origin, TensorInfo};

    fn index() -> TensorIndex {
        let mut keys = vec!["lm_head.weight".to_owned(), "model.embed_tokens.weight".to_owned()];
        for layer in 0..3 {
            for name in ["self_attn.q_proj.weight", "self_attn.o_proj.weight", "mlp.up_proj.weight"] {
                keys.push(format!("model.layers.{layer}.{name}"));
            }
        }
        let info = |key: &String| {
            let origin = Origin::Stored { shard: 0, range: 0..0 };
            (Key::from(key.as_str()), TensorInfo { dtype: Dtype::F32, shape: vec![0], origin })
        };
        TensorIndex::new(keys.iter().map(info).collect())
    }

    #[track_caller]
    fn check(pattern: &str, expected: &str) {
        let index = index();
        let help = help(&Vocabulary::new(&index), pattern);
        assert!(help.contains(expected), "{help}");
    }

    #[test]
    fn the_component_that_fails_is_named_with_what_stands_there() {
        check("model.layers.*.attn.o_proj.weight", "after `model.layers.*` comes no `attn` but `self_attn`");
        check("model.layers.*.attn.o_proj.weight", "nearest: `model.layers.*.self_attn.o_proj.weight`");
        check("model.layers.7.mlp.up_proj.weight", "after `model.layers` comes no `7` but 0–2");
        check("modle.layers.*", "no key begins with `modle`; keys begin with `model`");
    }

    #[test]
    fn what_was_meant_in_another_notation_is_offered() {
        check(
            "model.layers.*.mlp.up_proj",
            "a pattern matches whole keys; completed it would match 3 keys: `model.layers.*.mlp.up_proj.weight`",
        );
        check("lm_head", "completed it would match 1 key: `lm_head.weight`");
        check("*.up_proj", "completed it would match 3 keys: `*.up_proj.weight`");
        check("layers.0.mlp.up_proj", "1 key: `model.layers.0.mlp.up_proj.weight`");
        check("self_attn", "6 keys: `*.self_attn.*`");
        check(
            r"model\.layers\.\d+\.mlp\..*",
            "patterns are globs; as one it would match 3 keys: `model.layers.*.mlp.*`",
        );
        check("model.layers.{0–1}.mlp.*", "as one it would match 2 keys: `model.layers.{0..1}.mlp.*`");
    }

    #[test]
    fn a_pattern_in_capitals_is_offered_without() {
        check(
            "MODEL.Layers.*.mlp.up_proj.weight",
            "lower case; so it would match 3 keys: `model.layers.*.mlp",
        );
    }

    #[test]
    fn a_word_after_a_leading_star_is_compared_with_the_parts_of_keys() {
        check("*.mlpp.*", "no part of a key is `mlpp` but `mlp`");
        check("*.mlpp.*", "; nearest: `*.mlp.*`, which would match 3 keys; `mlxcel surgery keys");
        check("*.attn.*", "no part of a key is `attn` but `self_attn`");
        check("*.attn.*", "nearest: `*.self_attn.*`, which would match 6 keys");
        check("*.up_prj.weight", "nearest: `*.up_proj.weight`, which would match 3 keys");
        check("*.mlp.upp_proj.weight", "nearest: `*.mlp.up_proj.weight`, which would match 3 keys");
        check("*.layer.*.mlp.*", "no part of a key is `layer` but `layers`");
        check("*.layer.*.mlp.*", "nearest: `*.layers.*.mlp.*`, which would match 3 keys");
        check("*.layer.*.mlpp.*", "nearest: `*.layers.*.mlp.*`, which would match 3 keys");
        check("*up_prj*", "nearest: `*up_proj*`, which would match 3 keys");
        check("*.layers.*.x_proj.weight", "no part of a key is `x_proj` but `o_proj`");
        check("*.experts.*", "no part of a key is `experts` but `layers`, ");
        check("*.embed.*", "no part of a key is `embed` but `embed_tokens`; nearest: `*.embed_tokens.*`");
        check("*.tok.*", "no part of a key is `tok` but `embed_tokens`, ");
        assert!(!help(&Vocabulary::new(&index()), "*.tok.*").contains("nearest"), "too short a piece");
    }

    #[test]
    fn a_leading_star_that_nothing_stands_before_is_told_of() {
        check("*.model.layers.*.mlp.*", "without it the pattern would match 3 keys: `model.layers.*.mlp.*`");
        check("*.mlp.q_proj.weight", "after `*.mlp` comes no `q_proj` but `up_proj`");
        check("*.weight.q_proj", "no key ends with `weight.q_proj`");
    }

    #[test]
    fn a_pattern_that_another_prefix_would_save_is_told_so() {
        let expected = "with another prefix it would match 3 keys: `model.layers.*.mlp.up_proj.weight`";
        check("language_model.model.layers.*.mlp.up_proj.weight", expected);
        check("layers.*.mlp.up_proj.weight", expected);
        check("model.language_model.layers.*.mlp.up_proj.weight", expected);
    }

    #[test]
    fn dots_in_classes_and_alternatives_do_not_separate() {
        let text = "a.{b.c,d}.[.x].e";
        let parts: Vec<&str> = components(text).into_iter().map(|(a, b)| &text[a..b]).collect();
        assert_eq!(parts, ["a", "{b.c,d}", "[.x]", "e"]);
    }
}
