//! [`Rope`]: rotary position embedding (<https://arxiv.org/abs/2104.09864>) and its scalings to longer contexts.
//!
//! Every scaling is a table of periods (reciprocals of the angular frequencies), computed once in f64.

use std::f64::consts::TAU;

use crate::mlx::{Array, Result};

/// What a configuration says of rotary positions.
#[derive(Debug, Clone, PartialEq)]
pub struct RopeSpec {
    /// Base of the geometric series of periods.
    pub theta: f64,
    /// How it was stretched to longer contexts.
    pub scaling: Scaling,
}

/// How rotary positions were stretched to longer contexts.
#[derive(Debug, Clone, PartialEq)]
pub enum Scaling {
    /// Not at all.
    Default,
    /// All positions divided by a factor (<https://arxiv.org/abs/2306.15595>).
    Linear {
        /// At least 1.
        factor: f64,
    },
    /// Long periods stretched, short ones kept, those between interpolated (<https://arxiv.org/abs/2407.21783>).
    Llama3 {
        /// By how much long periods are stretched.
        factor: f64,
        /// Periods beyond `original_context / low` count as long.
        low: f64,
        /// Periods below `original_context / high` count as short.
        high: f64,
        /// Positions the model was trained on first.
        original_context: f64,
    },
}

/// Rotates queries and keys by their positions.
#[derive(Debug, Clone)]
pub struct Rope {
    dims: i32,
    periods: Array,
}

impl RopeSpec {
    /// One period for each pair of the `dims` dimensions: the position at which its angle is one radian.
    #[must_use]
    pub fn periods(&self, dims: usize) -> Vec<f64> {
        #[expect(clippy::cast_precision_loss, reason = "dimensions are small")]
        let plain = (0..dims / 2).map(|pair| self.theta.powf((2 * pair) as f64 / dims as f64));
        match self.scaling {
            Scaling::Default => plain.collect(),
            Scaling::Linear { factor } => plain.map(|period| period * factor).collect(),
            Scaling::Llama3 { factor, low, high, original_context } => {
                let stretch = |period: f64| {
                    let turns = original_context / (TAU * period);
                    if turns < low {
                        period * factor
                    } else if turns > high {
                        period
                    } else {
                        let smooth = (turns - low) / (high - low);
                        period / ((1.0 - smooth) / factor + smooth)
                    }
                };
                plain.map(stretch).collect()
            }
        }
    }
}

impl Rope {
    /// Rotates the first `dims` (even) of each head.
    pub(crate) fn new(spec: &RopeSpec, dims: usize) -> Result<Self> {
        #[expect(clippy::cast_possible_truncation, reason = "computed in f64, used in f32")]
        let periods: Vec<f32> = spec.periods(dims).iter().map(|&period| period as f32).collect();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_possible_wrap,
            reason = "dimensions are small"
        )]
        let periods = Array::from_f32(&periods, &[periods.len() as i32])?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_possible_wrap,
            reason = "dimensions are small"
        )]
        let dims = dims as i32;
        Ok(Self { dims, periods })
    }

    /// x `[B, heads, T, head_dim]` at positions from `offset` → the same shape.
    pub(crate) fn forward(&self, x: &Array, offset: usize) -> Result<Array> {
        x.rope(self.dims, &self.periods, crate::mlx::int(offset)?)
    }
}
