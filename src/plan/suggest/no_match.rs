//! Help for a pattern that matches no key: where it stops matching, what is found there, what it may have meant.

use std::collections::BTreeSet;

use super::components::components;
use super::key_names::{KeyNames, MAX_COMPARED_LENGTH, nearest};
use super::misspelled::misspelled;
use super::rewrite::rewrites;
use crate::checkpoint::{Weights, models_beside_strays};
use crate::diagnostic::words;
use crate::surgery::{Matcher, Pattern};

/// Maximum number of keys that are scanned for the names at a place.
const MAX_KEYS_SCANNED: usize = 4096;
/// Maximum number of keys that are searched for all rewritten patterns together.
const MAX_KEYS_SEARCHED: usize = 1 << 20;
/// Rewritten patterns that are tried however large the checkpoint is.
const MIN_REWRITES: usize = 8;

/// Where a pattern stops matching, and what it may have meant.
pub(in crate::plan) fn help(names: &KeyNames<'_>, pattern: &str) -> String {
    help_with(names, pattern, "`mlxcel surgery keys --model DIR` lists the keys")
}

/// The same for a donor's keys.
pub(in crate::plan) fn donor_help(donor: &Weights, pattern: &str) -> String {
    let keys = donor.index.entries();
    if keys.iter().any(|(key, _)| key.as_str().contains(".lora_")) {
        return "the donor is a LoRA adapter, whose factors have other keys; merge it into full weights, or into one delta \
                for each tensor, and use the result"
            .into();
    }
    if let Some(meant) = models_beside_strays(&donor.path) {
        return format!(
            "the donor is read from a file beside models: name the file itself if you mean that one; {meant}"
        );
    }
    let list = format!("`mlxcel surgery keys --donor {}` lists its keys", donor.path.display());
    help_with(&KeyNames::new(&donor.index), pattern, &list)
}

fn help_with(names: &KeyNames<'_>, pattern: &str, list: &str) -> String {
    if names.index.entries().is_empty() {
        return "the checkpoint has no tensors".into();
    }
    if let Some(help) = rewritten(names, pattern) {
        return help;
    }
    let mut parts = misspelled(names, pattern).unwrap_or_else(|| {
        let mut parts = Vec::from_iter(failing_component(names, pattern));
        let near = nearest(names, pattern);
        if !near.is_empty() {
            parts.push(format!("nearest: {}", words::names(&near)));
        }
        parts
    });
    parts.push(list.to_owned());
    parts.join("; ")
}

/// The pattern rewritten in a way that matches.
fn rewritten(names: &KeyNames<'_>, pattern: &str) -> Option<String> {
    if pattern.len() > MAX_COMPARED_LENGTH {
        return None;
    }
    // In a large checkpoint, only the likeliest are tried.
    let most = (MAX_KEYS_SEARCHED / names.index.entries().len().max(1)).max(MIN_REWRITES);
    rewrites(pattern).into_iter().take(most).find_map(|rewrite| {
        let parsed = Pattern::parse(&rewrite.text).ok()?;
        match names.count(&parsed) {
            0 => None,
            n => Some(format!("{} {}: `{}`", rewrite.why, words::count(n, "key"), rewrite.text)),
        }
    })
}

/// "nothing named `attn` under `model.layers.*`; found `self_attn` and `mlp`".
fn failing_component(names: &KeyNames<'_>, pattern: &str) -> Option<String> {
    let components = components(pattern);
    let alive = |&end: &usize| {
        let prefix = format!("{}.*", &pattern[..components[end].1]);
        Pattern::parse(&prefix).is_ok_and(|prefix| names.any(&prefix))
    };
    // The first component after which nothing follows; if something follows all of them, it is the last that fails.
    let dead = (0..components.len().checked_sub(1)?).find(|end| !alive(end)).unwrap_or(components.len() - 1);
    let (start, end) = components[dead];
    let component = &pattern[start..end];
    let before = pattern[..start].trim_end_matches('.');
    if before == "*" {
        // It matches any number of components, so nothing in particular follows it.
        return Some(format!("no key ends with `{}`", &pattern[start..]));
    }
    let mut found = components_under(names, before)?;
    found.sort_by_cached_key(|name| (!name.contains(component), strsim::levenshtein(name, component)));
    if found.iter().any(|name| name == component) {
        return Some(match before {
            "" => format!("keys begin with `{component}`, but none ends there"),
            _ => format!("`{before}` has `{component}`, but not as the last part of a key"),
        });
    }
    let numbers: Option<Vec<u64>> = found.iter().map(|name| name.parse().ok()).collect();
    let there = numbers.map_or_else(
        || format!("found {}", words::names(&found)),
        |mut numbers| {
            numbers.sort_unstable();
            let noun = if is_layers(before) { "layers " } else { "found " };
            format!("{noun}{}", words::ranges(&numbers))
        },
    );
    let is_number = component.bytes().all(|byte| byte.is_ascii_digit());
    Some(match before {
        "" => format!("no key begins with `{component}`; keys begin with {}", words::names(&found)),
        _ if is_number && is_layers(before) => format!("`{before}` has no layer {component} ({there})"),
        _ => format!("nothing named `{component}` under `{before}`; {there}"),
    })
}

/// Whether a path is that of a stack of layers.
fn is_layers(path: &str) -> bool {
    matches!(path.rsplit('.').next(), Some("layers" | "h" | "blocks" | "block"))
}

/// The components that follow a prefix, in the keys that it matches.
fn components_under(names: &KeyNames<'_>, before: &str) -> Option<Vec<String>> {
    let first = |rest: &str| rest.split('.').next().unwrap_or_default().to_owned();
    let mut found = BTreeSet::new();
    if before.contains(['*', '?', '[', '{', '\\']) {
        let prefix = Pattern::parse(&format!("{before}.*")).ok()?;
        let matcher = Matcher::new(&prefix);
        for key in names.keys(&matcher).filter(|key| matcher.matches(key)).take(MAX_KEYS_SCANNED) {
            found.extend(matcher.captures(key).and_then(|captures| captures.0.last().map(|c| first(c))));
        }
    } else {
        // Without wildcards the keys are one run in the index: from each component it is one jump to the next.
        let prefix = if before.is_empty() { String::new() } else { format!("{before}.") };
        let index = names.index;
        let run = index.with_prefix(&prefix);
        let mut at = run.start;
        while at < run.end && found.len() < MAX_KEYS_SCANNED {
            let component = first(&index.entries()[at].0.as_str()[prefix.len()..]);
            at = index.with_prefix(&format!("{prefix}{component}.")).end.max(at + 1);
            found.insert(component);
        }
    }
    (!found.is_empty()).then(|| found.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::{Dtype, Key, Origin, TensorIndex, TensorInfo};

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
        let help = help(&KeyNames::new(&index), pattern);
        assert!(help.contains(expected), "{help}");
    }

    #[test]
    fn the_component_that_fails_is_named_with_what_is_there() {
        check(
            "model.layers.*.attn.o_proj.weight",
            "nothing named `attn` under `model.layers.*`; found `self_attn`",
        );
        check("model.layers.*.attn.o_proj.weight", "nearest: `model.layers.*.self_attn.o_proj.weight`");
        check("model.layers.7.mlp.up_proj.weight", "`model.layers` has no layer 7 (layers 0–2)");
        check("modle.layers.*", "no key begins with `modle`; keys begin with `model`");
    }

    #[test]
    fn what_was_meant_in_another_notation_is_offered() {
        check(
            "model.layers.*.mlp.up_proj",
            "a pattern must match the whole key; completed, it matches 3 keys: `model.layers.*.mlp.up_proj.weight`",
        );
        check("lm_head", "completed, it matches 1 key: `lm_head.weight`");
        check("*.up_proj", "completed, it matches 3 keys: `*.up_proj.weight`");
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
        check("MODEL.Layers.*.mlp.up_proj.weight", "in lowercase it would match 3 keys: `model.layers.*.mlp");
    }

    #[test]
    fn a_word_after_a_leading_star_is_compared_with_the_parts_of_keys() {
        check("*.mlpp.*", "no part of a key is named `mlpp`; found `mlp`");
        check("*.mlpp.*", "; nearest: `*.mlp.*`, which would match 3 keys; `mlxcel surgery keys");
        check("*.attn.*", "no part of a key is named `attn`; found `self_attn`");
        check("*.attn.*", "nearest: `*.self_attn.*`, which would match 6 keys");
        check("*.up_prj.weight", "nearest: `*.up_proj.weight`, which would match 3 keys");
        check("*.mlp.upp_proj.weight", "nearest: `*.mlp.up_proj.weight`, which would match 3 keys");
        check("*.layer.*.mlp.*", "no part of a key is named `layer`; found `layers`");
        check("*.layer.*.mlp.*", "nearest: `*.layers.*.mlp.*`, which would match 3 keys");
        check("*.layer.*.mlpp.*", "nearest: `*.layers.*.mlp.*`, which would match 3 keys");
        check("*up_prj*", "nearest: `*up_proj*`, which would match 3 keys");
        check("*.layers.*.x_proj.weight", "no part of a key is named `x_proj`; found `o_proj`");
        check("*.experts.*", "no part of a key is named `experts`; found `layers`, ");
        check(
            "*.embed.*",
            "no part of a key is named `embed`; found `embed_tokens`; nearest: `*.embed_tokens.*`",
        );
        check("*.tok.*", "no part of a key is named `tok`; found `embed_tokens`, ");
        assert!(!help(&KeyNames::new(&index()), "*.tok.*").contains("nearest"), "too short a piece");
    }

    #[test]
    fn a_leading_star_that_nothing_stands_before_is_told_of() {
        check("*.model.layers.*.mlp.*", "without it the pattern would match 3 keys: `model.layers.*.mlp.*`");
        check("*.mlp.q_proj.weight", "nothing named `q_proj` under `*.mlp`; found `up_proj`");
        check("*.weight.q_proj", "no key ends with `weight.q_proj`");
    }

    #[test]
    fn a_prefix_that_would_match_is_offered() {
        let expected = "with another prefix it matches 3 keys: `model.layers.*.mlp.up_proj.weight`";
        check("language_model.model.layers.*.mlp.up_proj.weight", expected);
        check("layers.*.mlp.up_proj.weight", expected);
        check("model.language_model.layers.*.mlp.up_proj.weight", expected);
    }
}
