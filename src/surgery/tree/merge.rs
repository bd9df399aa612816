//! Merge keys (`<<`): the fields of other mappings, put in place of the key.
//!
//! The parser passes `<<` through, so that a second one in a mapping can be refused and merged values keep the place of
//! their use.

use std::collections::HashSet;

use super::node::{Node, Value};

/// Replaces merge keys by the fields that they name, in the whole tree. Own fields win over merged ones, and earlier
/// merges over later ones. The second `<<` of a mapping, and one whose value is not a mapping, stay for lowering to report.
pub(super) fn merge(node: &mut Node, text: &str) {
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(|item| merge(item, text)),
        Value::Map(pairs) => {
            for (key, value) in pairs.iter_mut() {
                merge(key, text);
                merge(value, text);
            }
            if pairs.iter().any(|(key, _)| is_merge(key, text)) {
                *pairs = merged(std::mem::take(pairs), text);
            }
        }
        _ => {}
    }
}

/// Whether a key is a merge key: `<<` without quotes.
pub(in crate::surgery) fn is_merge(key: &Node, text: &str) -> bool {
    key.value == Value::Text("<<".to_owned()) && text.get(key.span.clone()).is_some_and(|key| key == "<<")
}

fn merged(pairs: Vec<(Node, Node)>, text: &str) -> Vec<(Node, Node)> {
    let mut known: HashSet<String> =
        pairs.iter().filter(|(key, _)| !is_merge(key, text)).map(|(key, _)| identity(key)).collect();
    let mut out = Vec::with_capacity(pairs.len());
    let mut first = true;
    for (key, mut value) in pairs {
        if !is_merge(&key, text) {
            out.push((key, value));
            continue;
        }
        let (sources, fits) = sources(&mut value.value);
        for (mut name, field) in sources.into_iter().flatten() {
            if known.insert(identity(&name)) {
                // The place of use is the merge, whatever aliases it goes through.
                name.alias.clone_from(&field.alias);
                out.push((name, field));
            }
        }
        if !(fits && first) {
            out.push((key, value));
        }
        first = false;
    }
    out
}

/// Takes the mappings that a `<<` names, and says whether it names nothing else.
fn sources(value: &mut Value) -> (Vec<Vec<(Node, Node)>>, bool) {
    match value {
        Value::Map(pairs) => (vec![std::mem::take(pairs)], true),
        Value::List(items) => {
            let mut all = true;
            let mut found = Vec::new();
            for item in items {
                match &mut item.value {
                    Value::Map(pairs) => found.push(std::mem::take(pairs)),
                    _ => all = false,
                }
            }
            (found, all)
        }
        _ => (Vec::new(), false),
    }
}

/// Equal for two keys of one name.
fn identity(key: &Node) -> String {
    match &key.value {
        Value::Text(name) => name.clone(),
        other => format!("\0{other:?}"),
    }
}
