//! Query heads: rows of q, columns of o. K and V serve several heads and stay.

use std::collections::BTreeMap;

use super::super::Action;
use super::super::draft::{Context, Draft, Tally};
use super::super::say;
use super::super::scope::Scope;
use super::linear::{self, Linear, Obstacle, Touch, touch};
use super::{Ids, below, nothing, slices};
use crate::diagnostic::{Code, Diagnostic};
use crate::surgery::{Granularity, Kind, Operation};

/// Names of projections in attention modules, known well or not.
const LEAVES: [&str; 24] = [
    "q_proj",
    "k_proj",
    "v_proj",
    "o_proj",
    "qkv_proj",
    "out_proj",
    "dense",
    "query_key_value",
    "c_attn",
    "Wqkv",
    "W_pack",
    "wqkv",
    "wq",
    "wk",
    "wv",
    "wo",
    "q_a_proj",
    "q_b_proj",
    "kv_a_proj_with_mqa",
    "kv_a_proj",
    "kv_b_proj",
    "embed_q",
    "unembed_out",
    "c_proj",
];

/// Families whose `q_proj` holds a gate beside each head's query.
const GATED: [&str; 5] = ["qwen3_next", "qwen3_5", "qwen3_5_moe", "qwen3_5_text", "qwen3_5_moe_text"];

/// What was found over all modules, for the remarks at the end.
#[derive(Default)]
struct Remarks<'a> {
    faults: Tally,
    kv: usize,
    half: Vec<&'a str>,
    coupled: Vec<String>,
    bias: Vec<String>,
}

pub(super) fn plan(
    context: &Context<'_>,
    operation: &Operation,
    scope: &Scope,
    ids: &Ids<'_>,
    draft: &mut Draft,
) {
    let mut remarks = Remarks::default();
    let modules = linear::reached(context, scope, |leaf| LEAVES.contains(&leaf), &mut remarks.faults);
    let mut reached = false;
    for (&parent, touched) in &modules {
        let kv_keys: usize = ["k_proj", "v_proj"].iter().map(|leaf| touch(touched, leaf).keys()).sum();
        remarks.kv += kv_keys;
        let all: usize = touched.values().map(Touch::keys).sum();
        if all == kv_keys || !is_attention(context, parent, touched.keys().copied()) {
            continue;
        }
        match Attention::find(context, parent) {
            Err(obstacle) => {
                remarks.faults.add(obstacle.code, obstacle.reason, obstacle.help, parent);
            }
            Ok(attention) => {
                reached = true;
                attention.prune(context, operation, (parent, touched), ids, draft, &mut remarks);
            }
        }
    }
    if !remarks.faults.is_empty() {
        remarks.faults.report(draft, &operation.pattern);
        return;
    }
    let refused = reached && coverage(context, ids, draft);
    if draft.edits.is_empty() && !refused {
        let help = "an attention module has `o_proj` beside `q_proj` or `qkv_proj`; heads are rows of the one and \
                    columns of the other, and only in the text model";
        nothing(operation, "attention_head", help, draft);
    } else if !refused {
        remarks.report(operation, draft);
    }
}

/// Whether projections with ambiguous names (`dense`, `c_proj`, `out_proj`) belong to attention.
fn is_attention<'a>(context: &Context<'_>, parent: &str, mut leaves: impl Iterator<Item = &'a str>) -> bool {
    let ambiguous = |leaf: &str| matches!(leaf, "dense" | "c_proj" | "out_proj" | "wo");
    leaves.any(|leaf| !ambiguous(leaf))
        || ["q_proj", "qkv_proj", "wq", "c_attn", "query_key_value"].iter().any(|q| has(context, parent, q))
}

fn has(context: &Context<'_>, parent: &str, leaf: &str) -> bool {
    ["weight", "qweight"].iter().any(|s| context.index().position(&format!("{parent}.{leaf}.{s}")).is_some())
}

/// An attention module whose layout is known.
struct Attention {
    q: Linear,
    o: Linear,
    /// Features of one head.
    width: usize,
    /// Rows of q that belong to one head.
    rows: usize,
    heads: usize,
    /// Whether q stands in `qkv_proj`.
    fused: bool,
}

impl Attention {
    fn find(context: &Context<'_>, parent: &str) -> Result<Self, Obstacle> {
        let o_only = "match `o_proj` alone where it has one column slice a head, or prune whole layers";
        let latent = ["kv_b_proj", "kv_a_proj_with_mqa", "kv_a_proj", "q_a_proj", "q_b_proj", "embed_q"];
        if latent.iter().any(|leaf| has(context, parent, leaf)) {
            let reason = "latent attention has no plain rows and columns for a head";
            return Err(Obstacle::layout(reason, "prune whole layers instead"));
        }
        let find = |leaf| linear::find(context, format!("{parent}.{leaf}"));
        let (q, fused) = match (find("q_proj")?, find("qkv_proj")?) {
            (Some(q), None) => (q, false),
            (None, Some(qkv)) => (qkv, true),
            _ => {
                let reason = "an attention module needs `q_proj` or `qkv_proj` beside `o_proj`";
                return Err(Obstacle::layout(reason, "prune whole layers instead"));
            }
        };
        let family = context.config().text_model_type();
        if fused && family != "phi3" {
            let reason = format!("the order of rows in `qkv_proj` of `{family}` is not known");
            return Err(Obstacle::layout(reason, o_only));
        }
        let Some(o) = find("o_proj")? else {
            let reason = "an attention module needs `o_proj` beside `q_proj` or `qkv_proj`";
            return Err(Obstacle::layout(reason, "prune whole layers instead"));
        };
        // No tensor has more rows than an i32 counts, so no model has more heads.
        let count =
            |n: Option<u64>| n.and_then(|n| i32::try_from(n).ok()).and_then(|n| usize::try_from(n).ok());
        let count = |n| count(n).filter(|&n| n > 0);
        let config = context.config();
        let (Some(heads), Some(kv_heads)) = (count(config.heads), count(config.kv_heads)) else {
            let reason = "`config.json` does not say how many attention heads there are";
            return Err(Obstacle::layout(reason, "give it `num_attention_heads`"));
        };
        let gate = if GATED.contains(&family) { 2 } else { 1 };
        // Rows of q for one feature of every head: what width is multiplied by.
        let slices = if fused { heads + 2 * kv_heads } else { heads * gate };
        let columns = columns(&o, (q.rows.is_multiple_of(slices)).then(|| q.rows / slices * heads))?;
        let width = columns / heads;
        if !columns.is_multiple_of(heads) || width == 0 || width.checked_mul(slices) != Some(q.rows) {
            let reason = format!(
                "{} rows and {columns} columns of `o_proj` are not {heads} heads of one width",
                if fused { format!("{} `qkv_proj`", q.rows) } else { format!("{} `q_proj`", q.rows) },
            );
            return Err(Obstacle::layout(reason, "prune whole layers instead"));
        }
        Ok(Self { q, o, width, rows: width * gate, heads, fused })
    }

    fn prune<'a>(
        &self,
        context: &Context<'a>,
        operation: &Operation,
        (parent, touched): (&'a str, &BTreeMap<&str, Touch>),
        ids: &Ids<'_>,
        draft: &mut Draft,
        remarks: &mut Remarks<'a>,
    ) {
        let heads = below(ids, self.heads);
        let q = touch(touched, if self.fused { "qkv_proj" } else { "q_proj" });
        let o = touch(touched, "o_proj");
        draft.acted += q.weight + q.bias + o.weight;
        let rows = slices(0, &[0], &heads, self.rows);
        if q.weight > 0 {
            self.q.zero(&rows, draft);
        }
        if let Some(bias) = self.q.bias {
            if q.bias > 0 {
                draft.edit(bias, Action::Zero { region: rows });
            } else if q.weight > 0 && !pruned_elsewhere(context, operation, ids, &[bias]) {
                remarks.bias.push(context.key(bias).to_owned());
            }
        }
        if o.weight > 0 {
            match self.column_width() {
                Ok(width) => self.o.zero(&slices(1, &[0], &heads, width), draft),
                Err(obstacle) => {
                    remarks.faults.add(obstacle.code, obstacle.reason, obstacle.help, &self.o.path);
                }
            }
        }
        if q.weight > 0 {
            if o.weight == 0 && !pruned_elsewhere(context, operation, ids, &self.o.positions()) {
                remarks.half.push(parent);
            }
            remarks.coupled.extend(self.coupling_norm(context, parent));
        }
    }

    /// Stored columns of o for one head.
    fn column_width(&self) -> Result<usize, Obstacle> {
        if self.o.set().is_none() {
            return Ok(self.width);
        }
        let group = (self.heads * self.width) / self.o.stored_columns;
        if self.width.is_multiple_of(group) {
            return Ok(self.width / group);
        }
        let help = if group > 32 && self.width.is_multiple_of(32) {
            "requantize `o_proj` with groups of 32, or use a dense checkpoint"
        } else {
            "use a dense checkpoint, or one where `o_proj` is not quantized"
        };
        let reason =
            format!("a head is {} columns wide, and a group of quantized `o_proj` is {group}", self.width);
        Err(Obstacle::new(Code::MisalignedRegion, reason, help))
    }

    /// A norm over all heads at once: after q, or before o.
    fn coupling_norm(&self, context: &Context<'_>, parent: &str) -> Option<String> {
        const NORMS: [&str; 7] =
            ["q_norm", "q_layernorm", "attn_sub_norm", "inner_attn_ln", "sub_norm", "o_norm", "attn_norm"];
        NORMS.iter().map(|norm| format!("{parent}.{norm}.weight")).find(|key| {
            let all = self.heads * self.width;
            self.heads > 1 && context.index().get(key).is_some_and(|info| info.shape == [all])
        })
    }
}

/// Input features of `o_proj`: its columns, or groups times group size. Where config and shapes leave a set's groups
/// open or contradict q, the features that q implies settle them.
fn columns(o: &Linear, implied: Option<usize>) -> Result<usize, Obstacle> {
    let Some(set) = o.set() else { return Ok(o.stored_columns) };
    let groups = o.stored_columns;
    let known = set.format.and_then(|f| usize::try_from(f.group_size).ok()).map(|size| size * groups);
    let fits = |features: usize| {
        groups > 0 && features.is_multiple_of(groups) && matches!(features / groups, 16 | 32 | 64 | 128)
    };
    match (known, implied.filter(|&features| fits(features))) {
        (_, Some(implied)) => Ok(implied),
        (Some(known), None) => Ok(known),
        (None, None) => Err(Obstacle::layout(
            "the group size of a quantized `o_proj` is not known",
            "give `config.json` the `quantization` that the checkpoint has",
        )),
    }
}

/// Whether another operation of the file zeroes (at least) the same heads in some of these tensors.
fn pruned_elsewhere(
    context: &Context<'_>,
    operation: &Operation,
    ids: &Ids<'_>,
    positions: &[usize],
) -> bool {
    positions.iter().any(|&position| {
        context.reached_by(position, |other| match &other.kind {
            Kind::Prune { granularity, ids: theirs } => {
                other.index != operation.index
                    && granularity.value == Granularity::AttentionHead
                    && ids.iter().all(|id| theirs.value.iter().any(|their| their.value == id.value))
            }
            _ => false,
        })
    })
}

/// Reports heads that the model does not have; returns whether there were some.
fn coverage(context: &Context<'_>, ids: &Ids<'_>, draft: &mut Draft) -> bool {
    let heads = context.config().heads.unwrap_or_default();
    for id in ids.iter().filter(|id| id.value >= heads) {
        let message = format!(
            "head {} does not exist: the model has {}",
            id.value,
            say::count(usize::try_from(heads).unwrap_or(usize::MAX), "query head")
        );
        let help = format!("heads count from 0 to {}", heads.saturating_sub(1));
        draft.say(id.mark(Diagnostic::new(Code::HeadOutOfRange, message).help(help), ""));
    }
    ids.iter().any(|id| id.value >= heads)
}

impl Remarks<'_> {
    fn report(self, operation: &Operation, draft: &mut Draft) {
        let mut say = |code, message: String, help: &str| {
            let diagnostic = Diagnostic::new(code, message).help(help);
            draft.say(operation.pattern.mark(diagnostic, ""));
        };
        if !self.half.is_empty() {
            say(
                Code::HalfPrunedHead,
                format!(
                    "only the query of these heads is zeroed, so they attend evenly and still write: {}",
                    say::names(&self.half)
                ),
                "match `o_proj` too (`o_proj` alone removes a head completely)",
            );
        }
        if !self.coupled.is_empty() {
            say(
                Code::CoupledHeads,
                format!("a norm spans all heads, so the others change too: {}", say::names(&self.coupled)),
                "`exclude: \"*.q_proj.*\"`: `o_proj` alone removes a head completely",
            );
        }
        if !self.bias.is_empty() {
            say(
                Code::BiasLeft,
                format!("the query bias of zeroed heads stays: {}", say::names(&self.bias)),
                "match the bias too, with a pattern that ends in `.*`",
            );
        }
        if self.kv > 0 {
            say(
                Code::KvSkipped,
                format!(
                    "{} of `k_proj` and `v_proj` left alone, as each serves several heads",
                    say::count(self.kv, "key")
                ),
                "nothing to do; a pattern of `{q,o}_proj` says the same more plainly",
            );
        }
    }
}
