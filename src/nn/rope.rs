//! [`Rope`]: rotary position embedding (<https://arxiv.org/abs/2104.09864>) and its scalings to longer contexts.
//!
//! Every scaling is a table of periods (reciprocals of the angular frequencies), computed once in f64.

use std::f64::consts::TAU;

use super::Batch;
use crate::mlx::{self, Array, Device, Result};

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
    periods: Vec<f64>,
    /// The same for MLX's kernel, f32.
    kernel: Array,
    device: Device,
}

/// The rotation of the new positions of a batch, made once for all layers.
#[derive(Debug)]
pub struct Turn<'r>(Way<'r>);

#[derive(Debug)]
enum Way<'r> {
    /// A GPU has a kernel that rotates from an offset, each sequence's own.
    Kernel { rope: &'r Rope, offsets: Vec<i32> },
    /// On the CPU that kernel is a dozen small operations in every layer; with tables four are left. `[T, dims]`, or
    /// `[B, 1, T, dims]` where sequences stand at different positions.
    Tables { cos: Array, sin: Array },
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
    /// Rotates heads of `dims` (even).
    pub(crate) fn new(spec: &RopeSpec, dims: usize) -> Result<Self> {
        let periods = spec.periods(dims);
        #[expect(clippy::cast_possible_truncation, reason = "the kernel takes f32")]
        let narrow: Vec<f32> = periods.iter().map(|&period| period as f32).collect();
        let kernel = Array::from_f32(&narrow, &[mlx::int(narrow.len())?])?;
        Ok(Self { periods, kernel, device: mlx::device() })
    }

    /// The rotation of a batch's new positions.
    pub(crate) fn turn(&self, batch: &Batch<'_>) -> Result<Turn<'_>> {
        self.turn_from(batch.offsets().collect(), batch.count())
    }

    /// The rotation of `count` positions from each sequence's offset.
    fn turn_from(&self, mut offsets: Vec<usize>, count: usize) -> Result<Turn<'_>> {
        // One offset stands for all where all are the same.
        if offsets.iter().all(|offset| offsets.first() == Some(offset)) {
            offsets.truncate(1);
        }
        Ok(Turn(match self.device {
            Device::Gpu => {
                let offsets = offsets.into_iter().map(mlx::int).collect::<Result<Vec<i32>>>()?;
                Way::Kernel { rope: self, offsets }
            }
            Device::Cpu => self.tables(&offsets, count)?,
        }))
    }

    /// Cosines and signed sines, so that a turn is x · cos + (x with its halves swapped) · sin.
    fn tables(&self, offsets: &[usize], count: usize) -> Result<Way<'_>> {
        let (mut cos, mut sin) = (Vec::new(), Vec::new());
        for position in offsets.iter().flat_map(|&offset| offset..offset + count) {
            #[expect(clippy::cast_precision_loss, reason = "positions are small")]
            let angles = self.periods.iter().map(|period| position as f64 / period);
            let (sines, cosines): (Vec<f64>, Vec<f64>) = angles.map(f64::sin_cos).unzip();
            cos.extend(cosines.iter().chain(&cosines));
            sin.extend(sines.iter().map(|sine| -sine).chain(sines.iter().copied()));
        }
        #[expect(clippy::cast_possible_truncation, reason = "computed in f64, used in f32")]
        let table = |values: Vec<f64>| {
            let values: Vec<f32> = values.into_iter().map(|value| value as f32).collect();
            let (rows, count, dims) = (mlx::int(offsets.len())?, mlx::int(count)?, 2 * self.periods.len());
            let shape = [rows, 1, count, mlx::int(dims)?];
            Array::from_f32(&values, if rows == 1 { &shape[2..] } else { &shape })
        };
        Ok(Way::Tables { cos: table(cos)?, sin: table(sin)? })
    }
}

impl Turn<'_> {
    /// x `[B, heads, T, dims]` → the same shape.
    pub(crate) fn apply(&self, x: &Array) -> Result<Array> {
        match &self.0 {
            Way::Kernel { rope, offsets } => x.rope(mlx::int(2 * rope.periods.len())?, &rope.kernel, offsets),
            Way::Tables { cos, sin } => {
                let [batch, heads, count, dims] = [x.dim(0), x.dim(1), x.dim(2), x.dim(3)];
                let first = x.slice(&[0; 4], &[batch, heads, count, dims / 2])?;
                let second = x.slice(&[0, 0, 0, dims / 2], &[batch, heads, count, dims])?;
                let swapped = Array::concatenate(&[&second, &first], 3)?;
                let dtype = x.dtype();
                x.multiply(&cos.cast(dtype)?)?.add(&swapped.multiply(&sin.cast(dtype)?)?)
            }
        }
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
        let x = Array::from_f32(&[0.5, 0.5, 0.5, 0.5, 1.0, 2.0, 3.0, 4.0], &[1, 1, 2, 4]).unwrap();
        let turn = |a: f32, b: f32, angle: f32| {
            (a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin())
        };
        let (outer, inner) = (turn(1.0, 3.0, 6.0), turn(2.0, 4.0, 6.0 / 100.0));
        for device in [Device::Cpu, Device::Gpu] {
            let spec = RopeSpec { theta: 10_000.0, scaling: Scaling::Default };
            let rope = Rope { device, ..Rope::new(&spec, 4).unwrap() };
            let found = rope.turn_from(vec![5], 2).unwrap().apply(&x).unwrap().to_f32().unwrap();
            for (found, wanted) in found[4..].iter().zip([outer.0, inner.0, outer.1, inner.1]) {
                assert!((found - wanted).abs() < 1e-5, "{device:?}: {found}, not {wanted}");
            }
        }
    }

    #[test]
    fn every_sequence_turns_from_its_own_offset() {
        let values: Vec<f32> = (0..48).map(|i| (f32::from(i as u8) * 0.37).sin()).collect();
        let x = Array::from_f32(&values, &[3, 2, 2, 4]).unwrap();
        for device in [Device::Cpu, Device::Gpu] {
            let spec = RopeSpec { theta: 10_000.0, scaling: Scaling::Default };
            let rope = Rope { device, ..Rope::new(&spec, 4).unwrap() };
            let turned = |offsets: &[usize], x: &Array| {
                rope.turn_from(offsets.to_vec(), 2).unwrap().apply(x).unwrap().to_f32().unwrap()
            };
            for offsets in [[3, 3, 9], [0, 7, 0], [4, 4, 4]] {
                let alone = offsets.iter().zip(0..).flat_map(|(&offset, row)| {
                    turned(&[offset], &x.slice(&[row, 0, 0, 0], &[row + 1, 2, 2, 4]).unwrap())
                });
                for (found, wanted) in turned(&offsets, &x).into_iter().zip(alone) {
                    assert!((found - wanted).abs() < 1e-6, "{device:?} {offsets:?}: {found}, not {wanted}");
                }
            }
        }
    }
}
