//! [`Attention`]: a module whose heads are known to be these rows of q and those columns of o.

use super::super::linear::{self, Linear, Obstacle};
use super::super::reached::Module;
use crate::checkpoint::TensorId;
use crate::diagnostic::Code;
use crate::plan::planned_operation::Context;

pub(super) fn has(context: &Context<'_>, module: &Module<'_>, leaf: &str) -> bool {
    ["weight", "qweight"].iter().any(|suffix| module.position(context, leaf, suffix).is_some())
}

/// An attention module whose layout is known.
pub(super) struct Attention {
    pub(super) q: Linear,
    pub(super) o: Linear,
    /// Features of one head.
    pub(super) width: usize,
    /// Rows of q that belong to one head.
    pub(super) rows: usize,
    pub(super) heads: usize,
    /// Whether q is part of `qkv_proj`.
    pub(super) fused: bool,
}

impl Attention {
    pub(super) fn find(context: &Context<'_>, module: &Module<'_>) -> Result<Self, Obstacle> {
        let o_only = "match `o_proj` alone where it has one column slice a head, or prune whole layers";
        let latent = ["kv_b_proj", "kv_a_proj_with_mqa", "kv_a_proj", "q_a_proj", "q_b_proj", "embed_q"];
        if latent.iter().any(|leaf| has(context, module, leaf)) {
            let reason = "in latent attention a head is no slice of rows and columns";
            return Err(Obstacle::layout(reason, "prune whole layers instead"));
        }
        let find = |leaf| linear::find(context, module, leaf);
        let (q, fused) = match (find("q_proj")?, find("qkv_proj")?) {
            (Some(q), None) => (q, false),
            (None, Some(qkv)) => (qkv, true),
            _ => {
                let reason = "an attention module needs `q_proj` or `qkv_proj` beside `o_proj`";
                return Err(Obstacle::layout(reason, "prune whole layers instead"));
            }
        };
        let family = context.config().text_model_type();
        if fused && !context.config().family().has_fused_projections {
            let reason = format!("the row order of `qkv_proj` in `{family}` is unknown");
            return Err(Obstacle::layout(reason, o_only));
        }
        let Some(o) = find("o_proj")? else {
            let reason = "an attention module needs `o_proj` beside `q_proj` or `qkv_proj`";
            return Err(Obstacle::layout(reason, "prune whole layers instead"));
        };
        // Tensors have at most i32::MAX rows, so no model has more heads.
        let count =
            |n: Option<u64>| n.and_then(|n| i32::try_from(n).ok()).and_then(|n| usize::try_from(n).ok());
        let count = |n| count(n).filter(|&n| n > 0);
        let config = context.config();
        let (Some(heads), Some(kv_heads)) = (count(config.heads), count(config.kv_heads)) else {
            let of_queries = count(config.heads).is_none();
            let field = if of_queries { "num_attention_heads" } else { "num_key_value_heads" };
            return Err(match config.value(field) {
                Some(_) => Obstacle::layout(
                    format!("`{field}` in `config.json` is not a positive integer"),
                    "restore the `config.json` that the model was published with",
                ),
                None => Obstacle::layout(
                    "`config.json` lacks the number of attention heads",
                    format!("add `{field}` to it"),
                ),
            });
        };
        let gate = if config.family().has_gated_query { 2 } else { 1 };
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

    /// Stored columns of o for one head.
    pub(super) fn column_width(&self) -> Result<usize, Obstacle> {
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
            format!("a head has {} columns, but `o_proj` is quantized in groups of {group}", self.width);
        Err(Obstacle::new(Code::MisalignedRegion, reason, help))
    }

    /// A norm over all heads at once: after q, or before o.
    pub(super) fn coupling_norm(&self, context: &Context<'_>, module: &Module<'_>) -> Option<TensorId> {
        const NORMS: [&str; 7] =
            ["q_norm", "q_layernorm", "attn_sub_norm", "inner_attn_ln", "sub_norm", "o_norm", "attn_norm"];
        let all = self.heads * self.width;
        let spans = |id: &TensorId| self.heads > 1 && context.entry(*id).1.shape == [all];
        NORMS.iter().filter_map(|norm| module.position(context, norm, "weight")).find(spans)
    }
}

/// Input features of `o_proj`: its columns, or groups times group size. Where config and shapes do not settle a set's
/// groups, or contradict q, the features that q implies do.
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
            "the group size of a quantized `o_proj` is unknown",
            "add the checkpoint's `quantization` to `config.json`",
        )),
    }
}
