//! [`Mlp`]: the gated feed-forward network (<https://arxiv.org/abs/2002.05202>).

use super::Linear;
use crate::mlx::{self, Array, Result};
use crate::weights::{WeightMap, WeightsError};

/// The activation of the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activation {
    /// x · sigmoid(x).
    Silu,
    /// x · Φ(x), Φ approximated with a hyperbolic tangent (<https://arxiv.org/abs/1606.08415>).
    GeluTanh,
}

/// Widths, biases and activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MlpShape {
    /// Width of the residual stream.
    pub hidden: usize,
    /// Width inside.
    pub inner: usize,
    /// Whether the projections have a bias.
    pub bias: bool,
    /// The activation of the gate.
    pub activation: Activation,
}

/// down(act(gate(x)) · up(x)), with gate and up as one projection.
#[derive(Debug)]
pub(crate) struct Mlp {
    gate_up: Linear,
    down: Linear,
    inner: i32,
    activation: Activation,
}

impl Activation {
    pub(super) fn apply(self, x: &Array) -> Result<Array> {
        match self {
            Self::Silu => x.multiply(&x.sigmoid()?),
            Self::GeluTanh => {
                let cube = x.multiply(x)?.multiply(x)?;
                // √(2/π)
                let inside = x.add(&cube.scaled(0.044_715)?)?.scaled(0.797_884_6)?;
                x.scaled(0.5)?.multiply(&inside.tanh()?.add(&Array::scalar(1.0).cast(x.dtype())?)?)
            }
        }
    }
}

impl Mlp {
    /// Takes `gate_proj`, `up_proj` and `down_proj` of `<module>`.
    ///
    /// # Errors
    /// A tensor that is missing or does not fit.
    pub(crate) fn new(
        weights: &mut WeightMap<'_>,
        module: &str,
        shape: MlpShape,
    ) -> Result<Self, WeightsError> {
        let MlpShape { hidden, inner, bias, .. } = shape;
        let parts = [("gate_proj", inner), ("up_proj", inner)];
        Self::of(Linear::stacked(weights, module, &parts, hidden, bias)?, weights, module, shape)
    }

    /// Takes `gate_up_proj` and `down_proj` of `<module>`.
    ///
    /// # Errors
    /// A tensor that is missing or does not fit.
    pub(crate) fn fused(
        weights: &mut WeightMap<'_>,
        module: &str,
        shape: MlpShape,
    ) -> Result<Self, WeightsError> {
        let MlpShape { hidden, inner, bias, .. } = shape;
        let gate_up = Linear::new(weights, &format!("{module}.gate_up_proj"), 2 * inner, hidden, bias)?;
        Self::of(gate_up, weights, module, shape)
    }

    fn of(
        gate_up: Linear,
        weights: &mut WeightMap<'_>,
        module: &str,
        shape: MlpShape,
    ) -> Result<Self, WeightsError> {
        let MlpShape { hidden, inner, bias, activation } = shape;
        let down = Linear::new(weights, &format!("{module}.down_proj"), hidden, inner, bias)?;
        Ok(Self { gate_up, down, inner: mlx::int(inner)?, activation })
    }

    /// x `[B, T, hidden]` → the same shape.
    pub(crate) fn forward(&self, x: &Array) -> Result<Array> {
        let both = self.gate_up.forward(x)?;
        let (batch, count, inner) = (both.dim(0), both.dim(1), self.inner);
        let gate = both.slice(&[0, 0, 0], &[batch, count, inner])?;
        let up = both.slice(&[0, 0, inner], &[batch, count, 2 * inner])?;
        self.down.forward(&self.activation.apply(&gate)?.multiply(&up)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activations_are_what_their_names_say() {
        let x = Array::from_f32(&[-2.0, 0.0, 0.5, 3.0], &[4]).unwrap();
        let check = |activation: Activation, wanted: [f32; 4]| {
            for (found, wanted) in activation.apply(&x).unwrap().to_f32().unwrap().into_iter().zip(wanted) {
                assert!((found - wanted).abs() < 1e-5, "{activation:?}: {found}, not {wanted}");
            }
        };
        check(Activation::Silu, [-0.238_405_85, 0.0, 0.311_229_66, 2.857_722_3]);
        check(Activation::GeluTanh, [-0.045_402_3, 0.0, 0.345_714_04, 2.996_362_6]);
    }
}
