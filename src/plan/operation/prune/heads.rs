//! Query heads: rows of q, columns of o. K and V serve several heads and are not zeroed.

mod attention;

use super::ids::{Ids, below, nothing, range};
use super::linear::Obstacle;
use super::reached::{Module, reached};
use super::slices::Slices;
use crate::diagnostic::{Code, Diagnostic};
use crate::plan::action::Action;
use crate::plan::planned_operation::{Context, Faults, PlannedOperation, PrunedHeads, WithoutOutput};
use crate::plan::scope::Scope;
use crate::surgery::{Granularity, Operation};
use attention::{Attention, has};

/// Names of projections in attention modules, whether or not their layout is known.
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

pub(super) fn plan(
    context: &Context<'_>,
    operation: &Operation,
    scope: &Scope,
    ids: &Ids<'_>,
    planned: &mut PlannedOperation,
) {
    let (mut faults, mut heads) = (Faults::default(), PrunedHeads::default());
    let modules = reached(context, scope, |leaf| LEAVES.contains(&leaf), &mut faults);
    let mut known = false;
    let mut slices = Slices::new(ids);
    for module in &modules {
        let kv_keys: usize = ["k_proj", "v_proj"].iter().map(|leaf| module.touch(leaf).keys()).sum();
        heads.kv_keys += kv_keys;
        if module.keys() == kv_keys || !is_attention(context, module) {
            continue;
        }
        match Attention::find(context, module) {
            Err(obstacle) => faults.add(obstacle.code, obstacle.reason, obstacle.help, module.parent),
            Ok(attention) => {
                known = true;
                heads.ids = below(ids, attention.heads).into_iter().map(|head| head as u64).collect();
                if let Err(obstacle) = attention.prune(context, module, &mut slices, planned, &mut heads) {
                    let name = format!("{}.o_proj", module.parent);
                    faults.add(obstacle.code, obstacle.reason, obstacle.help, &name);
                }
            }
        }
    }
    let refused = known && coverage(context, ids, planned);
    if !faults.is_empty() {
        faults.report(planned, &operation.pattern);
        return;
    }
    if planned.edits.is_empty() && !refused {
        let help = if heads.kv_keys > 0 {
            "match `o_proj`, which alone removes a head completely, or `{q,o}_proj`: `k_proj` and `v_proj` serve several \
             heads each and are not zeroed"
        } else {
            "match attention modules of the text model: `o_proj`, whose columns are heads, with `q_proj` or `qkv_proj`, \
             whose rows are heads"
        };
        nothing(operation, Granularity::AttentionHead, help, planned);
    } else if !refused {
        planned.heads = Some(heads);
    }
}

/// Whether projections with ambiguous names (`dense`, `c_proj`, `out_proj`) belong to attention.
fn is_attention(context: &Context<'_>, module: &Module<'_>) -> bool {
    let ambiguous = |leaf: &str| matches!(leaf, "dense" | "c_proj" | "out_proj" | "wo");
    module.leaves().any(|leaf| !ambiguous(leaf))
        || ["q_proj", "qkv_proj", "wq", "c_attn", "query_key_value"].iter().any(|q| has(context, module, q))
}

impl Attention {
    /// Zeroes the heads in what is matched of the module.
    ///
    /// # Errors
    /// Why they are no slices of the matched `o_proj`.
    fn prune(
        &self,
        context: &Context<'_>,
        module: &Module<'_>,
        slices: &mut Slices,
        planned: &mut PlannedOperation,
        heads: &mut PrunedHeads,
    ) -> Result<(), Obstacle> {
        let q = module.touch(if self.fused { "qkv_proj" } else { "q_proj" });
        let o = module.touch("o_proj");
        planned.acts_on(q.weight + q.bias + o.weight);
        let rows = slices.of(0, &[0], self.heads, self.rows);
        if q.weight > 0 {
            self.q.zero(&rows, planned);
            heads.norms.extend(self.coupling_norm(context, module));
            if o.weight == 0 {
                let (parent, output) = (module.parent.to_owned(), self.o.positions());
                heads.without_output.push(WithoutOutput { parent, output });
            }
        }
        if let Some(bias) = self.q.bias {
            if q.bias > 0 {
                planned.edit(bias, Action::Zero { region: rows });
            } else if q.weight > 0 {
                heads.biases.push(bias);
            }
        }
        if o.weight > 0 {
            let width = self.column_width()?;
            self.o.zero(&slices.of(1, &[0], self.heads, width), planned);
        }
        Ok(())
    }
}

/// Reports heads that the model does not have; returns whether there were some.
fn coverage(context: &Context<'_>, ids: &Ids<'_>, planned: &mut PlannedOperation) -> bool {
    let heads = context.config().heads.unwrap_or_default();
    for id in ids.iter().filter(|id| id.value >= heads) {
        let message = format!("the model has no head {} ({})", id.value, range("query heads", heads));
        let help = format!("use ids from 0 to {}", heads.saturating_sub(1));
        planned.report(id.label_at_use(Diagnostic::new(Code::HeadOutOfRange, message).help(help), ""));
    }
    ids.iter().any(|id| id.value >= heads)
}
