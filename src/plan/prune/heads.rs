//! Query heads: rows of q, columns of o. K and V serve several heads and stay.

mod attention;

use super::super::Action;
use super::super::draft::{Context, Draft, Tally};
use super::super::scope::Scope;
use super::reached::{Module, reached};
use super::{Ids, Slices, below, nothing};
use attention::{Attention, has};

use crate::diagnostic::{Code, Diagnostic, words};
use crate::surgery::{Granularity, Operation};

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
    let modules = reached(context, scope, |leaf| LEAVES.contains(&leaf), &mut remarks.faults);
    let mut known = false;
    let mut slices = Slices::new(ids);
    for module in &modules {
        let kv_keys: usize = ["k_proj", "v_proj"].iter().map(|leaf| module.touch(leaf).keys()).sum();
        remarks.kv += kv_keys;
        if module.keys() == kv_keys || !is_attention(context, module) {
            continue;
        }
        match Attention::find(context, module) {
            Err(obstacle) => {
                remarks.faults.add(obstacle.code, obstacle.reason, obstacle.help, module.parent);
            }
            Ok(attention) => {
                known = true;
                attention.prune(context, operation, module, (ids, &mut slices), draft, &mut remarks);
            }
        }
    }
    let refused = known && coverage(context, ids, draft);
    if !remarks.faults.is_empty() {
        remarks.faults.report(draft, &operation.pattern);
        return;
    }
    if draft.edits.is_empty() && !refused {
        let help = if remarks.kv > 0 {
            "`k_proj` and `v_proj` serve several heads each and stay as they are: match `o_proj`, which alone removes a \
             head completely, or `{q,o}_proj`"
        } else {
            "an attention module has `o_proj` beside `q_proj` or `qkv_proj`; heads are rows of the one and columns of \
             the other, and only in the text model"
        };
        nothing(operation, Granularity::AttentionHead, help, draft);
    } else if !refused {
        remarks.report(operation, draft);
    }
}

/// Whether projections with ambiguous names (`dense`, `c_proj`, `out_proj`) belong to attention.
fn is_attention(context: &Context<'_>, module: &Module<'_>) -> bool {
    let ambiguous = |leaf: &str| matches!(leaf, "dense" | "c_proj" | "out_proj" | "wo");
    module.leaves().any(|leaf| !ambiguous(leaf))
        || ["q_proj", "qkv_proj", "wq", "c_attn", "query_key_value"].iter().any(|q| has(context, module, q))
}

impl Attention {
    fn prune<'a>(
        &self,
        context: &Context<'a>,
        operation: &Operation,
        module: &Module<'a>,
        (ids, slices): (&Ids<'_>, &mut Slices),
        draft: &mut Draft,
        remarks: &mut Remarks<'a>,
    ) {
        let heads = below(ids, self.heads);
        let q = module.touch(if self.fused { "qkv_proj" } else { "q_proj" });
        let o = module.touch("o_proj");
        draft.acted += q.weight + q.bias + o.weight;
        let ids: Vec<u64> = heads.iter().map(|&head| head as u64).collect();
        let elsewhere = |positions: &[usize]| context.others.prune(operation, &ids, positions);
        let rows = slices.of(0, &[0], self.heads, self.rows);
        if q.weight > 0 {
            self.q.zero(&rows, draft);
        }
        if let Some(bias) = self.q.bias {
            if q.bias > 0 {
                draft.edit(bias, Action::Zero { region: rows });
            } else if q.weight > 0 && !elsewhere(&[bias]) {
                remarks.bias.push(context.key(bias).to_owned());
            }
        }
        if o.weight > 0 {
            match self.column_width() {
                Ok(width) => self.o.zero(&slices.of(1, &[0], self.heads, width), draft),
                Err(obstacle) => {
                    let name = format!("{}.o_proj", module.parent);
                    remarks.faults.add(obstacle.code, obstacle.reason, obstacle.help, &name);
                }
            }
        }
        if q.weight > 0 {
            if o.weight == 0 && !elsewhere(&self.o.positions()) {
                remarks.half.push(module.parent);
            }
            remarks.coupled.extend(self.coupling_norm(context, module));
        }
    }
}

/// Reports heads that the model does not have; returns whether there were some.
fn coverage(context: &Context<'_>, ids: &Ids<'_>, draft: &mut Draft) -> bool {
    let heads = context.config().heads.unwrap_or_default();
    for id in ids.iter().filter(|id| id.value >= heads) {
        let message = format!(
            "head {} does not exist: the model has {}",
            id.value,
            words::count(usize::try_from(heads).unwrap_or(usize::MAX), "query head")
        );
        let help = format!("heads count from 0 to {}", heads.saturating_sub(1));
        draft.say(id.label_at_use(Diagnostic::new(Code::HeadOutOfRange, message).help(help), ""));
    }
    ids.iter().any(|id| id.value >= heads)
}

impl Remarks<'_> {
    fn report(self, operation: &Operation, draft: &mut Draft) {
        let mut say = |code, message: String, help: &str| {
            let diagnostic = Diagnostic::new(code, message).help(help);
            draft.say(operation.pattern.label_at_use(diagnostic, ""));
        };
        if !self.half.is_empty() {
            say(
                Code::HalfPrunedHead,
                format!(
                    "only the query of these heads is zeroed, so they attend evenly and still write: {}",
                    words::names(&self.half)
                ),
                "match `o_proj` too (`o_proj` alone removes a head completely)",
            );
        }
        if !self.coupled.is_empty() {
            say(
                Code::CoupledHeads,
                format!("a norm spans all heads, so the others change too: {}", words::names(&self.coupled)),
                "`exclude: \"*.q_proj.*\"`: `o_proj` alone removes a head completely",
            );
        }
        if !self.bias.is_empty() {
            say(
                Code::BiasLeft,
                format!("the query bias of zeroed heads stays: {}", words::names(&self.bias)),
                "match the bias too, with a pattern that ends in `.*`",
            );
        }
        if self.kv > 0 {
            say(
                Code::KvSkipped,
                format!(
                    "{} of `k_proj` and `v_proj` left alone, as each serves several heads",
                    words::count(self.kv, "key")
                ),
                "nothing to do; a pattern of `{q,o}_proj` says the same more plainly",
            );
        }
    }
}
