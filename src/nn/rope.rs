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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(scaling: Scaling, pair: usize, wanted: f64) {
        let spec = RopeSpec { theta: 10_000.0, scaling };
        let found = spec.periods(8)[pair];
        assert!((found / wanted - 1.0).abs() < 1e-12, "{found}, not {wanted}");
    }

    #[test]
    fn periods_are_a_geometric_series() {
        for (pair, wanted) in [1.0, 10.0, 100.0, 1000.0].into_iter().enumerate() {
            check(Scaling::Default, pair, wanted);
            check(Scaling::Linear { factor: 4.0 }, pair, wanted * 4.0);
        }
    }

    #[test]
    fn llama3_stretches_long_periods_keeps_short_ones_and_blends_between() {
        let scaling = || Scaling::Llama3 { factor: 8.0, low: 1.0, high: 4.0, original_context: 1024.0 };
        // 1024 positions make 163, 16.3, 1.63 and 0.163 turns.
        check(scaling(), 0, 1.0);
        check(scaling(), 1, 10.0);
        let smooth = (1024.0 / (TAU * 100.0) - 1.0) / 3.0;
        check(scaling(), 2, 100.0 / ((1.0 - smooth) / 8.0 + smooth));
        check(scaling(), 3, 8000.0);
    }

    #[test]
    fn rotation_turns_halves_against_each_other_by_position_over_period() {
        let rope = Rope::new(&RopeSpec { theta: 10_000.0, scaling: Scaling::Default }, 4).unwrap();
        let x = Array::from_f32(&[1.0, 2.0, 3.0, 4.0], &[1, 1, 1, 4]).unwrap();
        let found = rope.forward(&x, 5).unwrap().to_f32().unwrap();
        let turn = |a: f32, b: f32, angle: f32| {
            (a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin())
        };
        let ((a, c), (b, d)) = (turn(1.0, 3.0, 5.0), turn(2.0, 4.0, 5.0 / 100.0));
        for (found, wanted) in found.iter().zip([a, b, c, d]) {
            assert!((found - wanted).abs() < 1e-5, "{found}, not {wanted}");
        }
    }
}
