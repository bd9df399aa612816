//! Whole transformer blocks.

use std::collections::{BTreeMap, BTreeSet};

use super::ids::{Ids, nothing};
use crate::checkpoint::{Key, is_other_tower};
use crate::diagnostic::{Code, Diagnostic, words};
use crate::plan::action::{Action, Region};
use crate::plan::planned_operation::{Context, Faults, PlannedOperation, unusable};
use crate::plan::scope::{Scope, What, units};
use crate::plan::working_precision::Class;
use crate::surgery::{Granularity, Operation};

/// Stack → layers of it.
type Stacks<'a> = BTreeMap<&'a str, BTreeSet<u64>>;

pub(super) fn plan(
    context: &Context<'_>,
    operation: &Operation,
    scope: &Scope,
    ids: &Ids<'_>,
    planned: &mut PlannedOperation,
) {
    let wanted: BTreeSet<u64> = ids.iter().map(|id| id.value).collect();
    let sources = shared_kv_sources(context);
    let mut faults = Faults::default();
    let mut stacks = Stacks::new();
    let mut zeroed: BTreeSet<u64> = BTreeSet::new();
    let (mut residual, mut shared) = (Vec::new(), Vec::new());
    let whole = || Action::Zero { region: Region::Whole };
    for unit in units(context.facts, scope) {
        let (key, _) = context.entry(unit.first);
        let Some((stack, number)) = key.layer() else { continue };
        stacks.entry(stack).or_default().insert(number);
        if !wanted.contains(&number) {
            continue;
        }
        if unusable(context, &unit, &mut faults) {
            // A layer with a refused tensor is reached: it must not be refused again as out of range.
            zeroed.insert(number);
            continue;
        }
        match &unit.what {
            What::Set { set, .. } => {
                planned.edit(set.scales, whole());
                planned.edit(set.biases, whole());
            }
            What::Plain(Class::Float) => planned.edit(unit.first, whole()),
            What::Plain(Class::Integer | Class::Unloadable) | What::Incomplete(_) | What::Foreign(_) => {
                continue;
            }
        }
        planned.acts_on(unit.keys);
        zeroed.insert(number);
        if key.suffix() == "layer_scalar" {
            residual.push(key.as_str());
        }
        if sources.contains(&number) && is_kv(key.as_str()) && !is_other_tower(key) {
            shared.push(key.as_str());
        }
    }
    if stacks.len() > 1 {
        planned.report(several(operation, &stacks));
    }
    if let Some(diagnostic) = left_behind(operation, &residual, &shared) {
        planned.report(diagnostic);
    }
    faults.report(planned, &operation.pattern);
    coverage(context, operation, ids, &stacks, &zeroed, planned);
}

/// Reports ids that do not exist in any reached stack or reach nothing, and operations that zero nothing at all.
fn coverage(
    context: &Context<'_>,
    operation: &Operation,
    ids: &Ids<'_>,
    stacks: &Stacks<'_>,
    zeroed: &BTreeSet<u64>,
    planned: &mut PlannedOperation,
) {
    let help =
        "match float tensors of layers: a layer is the number after `layers.`, `h.`, `blocks.` or `block.`";
    if stacks.is_empty() {
        return nothing(operation, Granularity::Layer, help, planned);
    }
    let unreached: Vec<_> = ids.iter().filter(|id| !zeroed.contains(&id.value)).collect();
    if unreached.is_empty() {
        return;
    }
    let existing = layers_of(context, stacks);
    let (no_layer, layers) = absent(&existing);
    let mut unprunable = false;
    for id in unreached {
        let number = id.value;
        let message = if !existing.values().any(|layers| layers.contains(&number)) {
            format!("{no_layer} {number} ({layers})")
        } else if stacks.values().any(|layers| layers.contains(&number)) {
            unprunable = true;
            continue;
        } else {
            format!("the pattern matches no tensor of layer {number}")
        };
        let diagnostic = Diagnostic::new(Code::LayerOutOfRange, message)
            .help("use ids of layers that the pattern matches (layers count from 0), or widen the pattern");
        planned.report(id.label_at_use(diagnostic, ""));
    }
    if unprunable && zeroed.is_empty() {
        nothing(operation, Granularity::Layer, help, planned);
    }
}

/// What precedes and follows the number in "`model.layers` has no layer 40 (layers 0–35)".
fn absent(stacks: &Stacks<'_>) -> (String, String) {
    let ranges = |layers: &BTreeSet<u64>| words::ranges(&layers.iter().copied().collect::<Vec<_>>());
    if let Some((stack, layers)) = stacks.first_key_value()
        && stacks.len() == 1
    {
        return (format!("`{stack}` has no layer"), format!("layers {}", ranges(layers)));
    }
    let known: Vec<String> = (stacks.iter().take(words::MAX_NAMES))
        .map(|(stack, layers)| format!("`{stack}` has layers {}", ranges(layers)))
        .collect();
    ("no matched stack has a layer".to_owned(), words::list(&known, stacks.len() - known.len()))
}

/// The layers that the index has in each of some stacks.
fn layers_of<'a>(context: &Context<'a>, stacks: &Stacks<'_>) -> Stacks<'a> {
    let mut layers = Stacks::new();
    for (key, _) in context.index().entries() {
        if let Some((stack, number)) = key.layer()
            && stacks.contains_key(stack)
        {
            layers.entry(stack).or_default().insert(number);
        }
    }
    layers
}

fn several(operation: &Operation, stacks: &Stacks<'_>) -> Diagnostic {
    let names: Vec<&str> = stacks.keys().copied().collect();
    let message = format!(
        "layer ids are ambiguous: the pattern matches {} stacks: {}",
        names.len(),
        words::names(&names)
    );
    let example = names.iter().find(|name| !is_other_tower(&Key::from(**name))).unwrap_or(&names[0]);
    let help = format!("name one stack in the pattern, such as `{example}.*`, or `exclude` the others");
    operation.pattern.label_at_use(Diagnostic::new(Code::SeveralStacks, message).help(help), "")
}

fn left_behind(operation: &Operation, residual: &[&str], shared: &[&str]) -> Option<Diagnostic> {
    let scalar = || format!("a layer scalar also multiplies the residual stream: {}", words::names(residual));
    let kv = || format!("later layers reuse these keys and values: {}", words::names(shared));
    let (message, exclude) = match (residual, shared) {
        ([], []) => return None,
        (_, []) => (scalar(), r#""*.layer_scalar""#),
        ([], _) => (kv(), r#""*.self_attn.{k_proj,v_proj,k_norm,v_norm}.*""#),
        (..) => (
            format!("{}; {}", scalar(), kv()),
            r#"["*.layer_scalar", "*.self_attn.{k_proj,v_proj,k_norm,v_norm}.*"]"#,
        ),
    };
    let diagnostic = Diagnostic::new(Code::ResidualOrSharedKv, message)
        .help(format!("add `exclude: {exclude}` to remove only what the layer itself contributes"));
    Some(operation.pattern.label_at_use(diagnostic, ""))
}

fn is_kv(key: &str) -> bool {
    key.split('.').any(|part| matches!(part, "k_proj" | "v_proj" | "k_norm" | "v_norm"))
}

/// The layers whose keys and values later layers read (Gemma 3n and 4): of each attention type, the last before the
/// sharing begins.
fn shared_kv_sources(context: &Context<'_>) -> BTreeSet<u64> {
    let config = context.config();
    let numbers = (config.number("num_kv_shared_layers"), config.number("num_hidden_layers"));
    let (Some(shared), Some(layers)) = numbers else {
        return BTreeSet::new();
    };
    let first = layers.saturating_sub(shared);
    if shared == 0 || first == 0 {
        return BTreeSet::new();
    }
    let Some(types) = config.value("layer_types").and_then(serde_json::Value::as_array) else {
        return BTreeSet::from([first - 1]);
    };
    let mut last: BTreeMap<&str, u64> = BTreeMap::new();
    for (number, kind) in (0..first).zip(types) {
        last.insert(kind.as_str().unwrap_or_default(), number);
    }
    last.into_values().collect()
}
