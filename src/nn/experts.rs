//! [`Experts`]: a mixture of gated networks; each token goes through a few of them (<https://arxiv.org/abs/2101.03961>).

use super::{Activation, Linear};
use crate::mlx::{self, Array, Dtype, Result};
use crate::weights::{Matrix, WeightMap, WeightsError};

/// Widths and counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExpertsShape {
    /// Width of the residual stream.
    pub hidden: usize,
    /// Width inside an expert.
    pub inner: usize,
    /// Number of experts.
    pub count: usize,
    /// Number of experts per token.
    pub taken: usize,
    /// Whether the shares of a token's experts are normalized to a sum of 1.
    pub normalized: bool,
    /// Names of an expert's gate, up and down projections where each expert has its own tensors. Stacked ones are always
    /// `gate_proj`, `up_proj` and `down_proj`.
    pub names: [&'static str; 3],
}

/// Σ share · down(silu(gate(x)) · up(x)) over the experts with the largest shares of the router.
#[derive(Debug)]
pub(crate) struct Experts {
    router: Linear,
    gate: Matrix,
    up: Matrix,
    down: Matrix,
    taken: i32,
    normalized: bool,
}

impl Experts {
    /// Takes `<module>.gate`, and the experts: from `<module>.switch_mlp`, which stacks them, or from
    /// `<module>.experts.<number>`.
    ///
    /// # Errors
    /// A tensor that is missing or does not fit.
    pub(crate) fn new(
        weights: &mut WeightMap<'_>,
        module: &str,
        shape: ExpertsShape,
    ) -> Result<Self, WeightsError> {
        let ExpertsShape { hidden, inner, count, taken, normalized, names } = shape;
        let router = Linear::new(weights, &format!("{module}.gate"), count, hidden, false)?;
        let [gate, up, down] = names;
        let mut take = |stacked: &str, name: &str, out, input| {
            let each: Vec<String> = (0..count).map(|e| format!("{module}.experts.{e}.{name}")).collect();
            weights.experts(&format!("{module}.switch_mlp.{stacked}"), &each, out, input)
        };
        Ok(Self {
            router,
            gate: take("gate_proj", gate, inner, hidden)?,
            up: take("up_proj", up, inner, hidden)?,
            down: take("down_proj", down, hidden, inner)?,
            taken: mlx::int(taken)?,
            normalized,
        })
    }

    /// x `[B, T, hidden]` → the same shape.
    pub(crate) fn forward(&self, x: &Array) -> Result<Array> {
        let (batch, count, width) = (x.dim(0), x.dim(1), x.dim(2));
        let shares = self.router.forward(x)?.cast(Dtype::Float32)?.softmax()?;
        let chosen = shares.largest_places(self.taken)?;
        let mut shares = shares.at(&chosen)?;
        if self.normalized {
            shares = shares.divide(&shares.sum(-1)?.reshape(&[batch, count, 1])?)?;
        }
        let each = x.reshape(&[batch, count, 1, 1, width])?;
        let gate = Activation::Silu.apply(&self.gate.apply_chosen(&each, &chosen)?)?;
        let inside = gate.multiply(&self.up.apply_chosen(&each, &chosen)?)?;
        let y = self.down.apply_chosen(&inside, &chosen)?;
        let y = y.reshape(&[batch, count, self.taken, width])?;
        let shares = shares.reshape(&[batch, count, self.taken, 1])?;
        y.multiply(&shares.cast(y.dtype())?)?.sum(2)
    }
}
