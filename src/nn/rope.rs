//! [`Rope`]: rotary position embedding (<https://arxiv.org/abs/2104.09864>) of queries and keys.

use super::{Batch, RopeSpec};
use crate::mlx::{self, Array, Device, Result};

/// Rotates queries and keys by their positions.
#[derive(Debug, Clone)]
pub(crate) struct Rope {
    head_dim: usize,
    periods: Periods,
    /// The original context, in positions, and the periods of sequences that are longer.
    long: Option<(usize, Periods)>,
    attention_factor: f64,
    device: Device,
}

/// The positions at which a pair of dimensions has turned by one radian, one for each pair: the reciprocals of what
/// Hugging Face calls `inv_freq`.
#[derive(Debug, Clone)]
struct Periods {
    exact: Vec<f64>,
    /// The same in f32, for MLX's kernel.
    kernel: Array,
}

/// Where the new positions of a sequence begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Start {
    offset: usize,
    /// Whether the sequence is longer than the original context.
    is_long: bool,
}

/// The rotation of the new positions of a batch, computed once for all layers.
#[derive(Debug)]
pub(crate) struct Rotation<'r>(Method<'r>);

#[derive(Debug)]
enum Method<'r> {
    /// On a GPU, a kernel rotates from each sequence's own offset.
    Kernel { rope: &'r Rope, starts: Vec<Start> },
    /// On the CPU that kernel is a dozen small operations in every layer; tables need four. `[T, head_dim]`, or
    /// `[B, 1, T, head_dim]` where sequences are at different positions.
    Tables { cos: Array, sin: Array, dims: i32 },
}

impl Periods {
    fn new(exact: Vec<f64>) -> Result<Self> {
        #[expect(clippy::cast_possible_truncation, reason = "the kernel takes f32")]
        let narrow: Vec<f32> = exact.iter().map(|&period| period as f32).collect();
        let kernel = Array::from_f32(&narrow, &[mlx::int(narrow.len())?])?;
        Ok(Self { exact, kernel })
    }
}

impl Rope {
    /// Rotates as the configuration says.
    pub(crate) fn new(spec: &RopeSpec) -> Result<Self> {
        let long = spec.long_periods();
        let long = long.map(|(longest, periods)| Ok::<_, mlx::Error>((longest, Periods::new(periods)?)));
        Ok(Self {
            head_dim: spec.head_dim,
            periods: Periods::new(spec.periods())?,
            long: long.transpose()?,
            attention_factor: spec.attention_factor(),
            device: mlx::device(),
        })
    }

    /// The original context, in positions, of a model that rotates longer sequences in another way.
    pub(crate) fn original_max_positions(&self) -> Option<usize> {
        self.long.as_ref().map(|(longest, _)| *longest)
    }

    /// The rotation of a batch's new positions.
    pub(crate) fn rotation(&self, batch: &Batch<'_>) -> Result<Rotation<'_>> {
        let is_long = |reach: usize| self.long.as_ref().is_some_and(|(longest, _)| reach > *longest);
        let start = |(offset, reach)| Start { offset, is_long: is_long(reach) };
        self.rotation_from(batch.offsets().zip(batch.reaches()).map(start).collect(), batch.count())
    }

    /// The rotation of `count` positions from each sequence's start.
    fn rotation_from(&self, mut starts: Vec<Start>, count: usize) -> Result<Rotation<'_>> {
        // Equal starts need one table.
        if starts.iter().all(|start| starts.first() == Some(start)) {
            starts.truncate(1);
        }
        Ok(Rotation(match self.device {
            Device::Gpu => Method::Kernel { rope: self, starts },
            Device::Cpu => self.tables(&starts, count)?,
        }))
    }

    fn periods(&self, long: bool) -> &Periods {
        match &self.long {
            Some((_, periods)) if long => periods,
            _ => &self.periods,
        }
    }

    /// Cosines and signed sines, so that a rotation is x · cos + (x with its halves swapped) · sin.
    fn tables(&self, starts: &[Start], count: usize) -> Result<Method<'_>> {
        let (mut cos, mut sin) = (Vec::new(), Vec::new());
        let still = self.head_dim - 2 * self.periods.exact.len();
        for start in starts {
            let periods = &self.periods(start.is_long).exact;
            for position in start.offset..start.offset + count {
                #[expect(clippy::cast_precision_loss, reason = "positions are small")]
                let angles = periods.iter().map(|period| position as f64 / period);
                let turns = angles
                    .map(|angle| (self.attention_factor * angle.sin(), self.attention_factor * angle.cos()));
                let (sines, cosines): (Vec<f64>, Vec<f64>) = turns.unzip();
                cos.extend(cosines.iter().chain(&cosines));
                sin.extend(sines.iter().map(|sine| -sine).chain(sines.iter().copied()));
                // Dimensions that are not rotated.
                cos.extend(std::iter::repeat_n(1.0, still));
                sin.extend(std::iter::repeat_n(0.0, still));
            }
        }
        let shape = [mlx::int(starts.len())?, 1, mlx::int(count)?, mlx::int(self.head_dim)?];
        #[expect(clippy::cast_possible_truncation, reason = "computed in f64, used in f32")]
        let table = |values: Vec<f64>| {
            let values: Vec<f32> = values.into_iter().map(|value| value as f32).collect();
            Array::from_f32(&values, if starts.len() == 1 { &shape[2..] } else { &shape })
        };
        Ok(Method::Tables { cos: table(cos)?, sin: table(sin)?, dims: shape[3] - mlx::int(still)? })
    }

    /// MLX's kernel from each sequence's start.
    fn kernel(&self, x: &Array, starts: &[Start]) -> Result<Array> {
        let dims = mlx::int(2 * self.periods.exact.len())?;
        let x = &self.scaled_by_attention_factor(x, dims)?;
        let is_long = starts.first().is_some_and(|start| start.is_long);
        if starts.iter().all(|start| start.is_long == is_long) {
            let offsets = starts.iter().map(|start| mlx::int(start.offset)).collect::<Result<Vec<i32>>>()?;
            return x.rope(dims, &self.periods(is_long).kernel, &offsets);
        }
        let mut rotated = Vec::new();
        for (row, start) in (0..).zip(starts) {
            let row = x.slice(&[row, 0, 0, 0], &[row + 1, x.dim(1), x.dim(2), x.dim(3)])?;
            let periods = &self.periods(start.is_long).kernel;
            rotated.push(row.rope(dims, periods, &[mlx::int(start.offset)?])?);
        }
        Array::concatenate(&rotated.iter().collect::<Vec<_>>(), 0)
    }

    /// x with its first `dims` dimensions multiplied by the attention factor.
    fn scaled_by_attention_factor(&self, x: &Array, dims: i32) -> Result<Array> {
        #[expect(clippy::cast_possible_truncation, reason = "used in f32")]
        let attention_factor = self.attention_factor as f32;
        let width = x.dim(3);
        if self.attention_factor.to_bits() == 1.0_f64.to_bits() {
            return Ok(x.clone());
        }
        let factors: Vec<f32> = (0..width).map(|at| if at < dims { attention_factor } else { 1.0 }).collect();
        x.multiply(&Array::from_f32(&factors, &[width])?.cast(x.dtype())?)
    }
}

impl Rotation<'_> {
    /// x `[B, heads, T, head_dim]` → the same shape.
    pub(crate) fn apply(&self, x: &Array) -> Result<Array> {
        match &self.0 {
            Method::Kernel { rope, starts } => rope.kernel(x, starts),
            Method::Tables { cos, sin, dims } => {
                let [batch, heads, count, width] = [x.dim(0), x.dim(1), x.dim(2), x.dim(3)];
                let part = |from, to| x.slice(&[0, 0, 0, from], &[batch, heads, count, to]);
                let (first, second) = (part(0, dims / 2)?, part(dims / 2, *dims)?);
                let swapped = if *dims < width {
                    Array::concatenate(&[&second, &first, &part(*dims, width)?], 3)?
                } else {
                    Array::concatenate(&[&second, &first], 3)?
                };
                let dtype = x.dtype();
                x.multiply(&cos.cast(dtype)?)?.add(&swapped.multiply(&sin.cast(dtype)?)?)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::Scaling;

    fn rope(head_dim: usize, scaling: Scaling, device: Device) -> Rope {
        let spec = RopeSpec { head_dim, dims: 4, theta: 10_000.0, scaling };
        Rope { device, ..Rope::new(&spec).unwrap() }
    }

    fn starts(offsets: &[usize]) -> Vec<Start> {
        // Odd offsets are those of long sequences.
        offsets.iter().map(|&offset| Start { offset, is_long: offset % 2 == 1 }).collect()
    }

    fn rotated(rope: &Rope, offsets: &[usize], x: &Array) -> Vec<f32> {
        let count = usize::try_from(x.dim(2)).unwrap();
        rope.rotation_from(starts(offsets), count).unwrap().apply(x).unwrap().to_f32().unwrap()
    }

    #[track_caller]
    fn check_close(what: &str, found: &[f32], wanted: &[f32]) {
        assert_eq!(found.len(), wanted.len(), "{what}");
        for (found, wanted) in found.iter().zip(wanted) {
            assert!((found - wanted).abs() < 1e-5, "{what}: {found}, not {wanted}");
        }
    }

    #[test]
    fn rotation_turns_halves_against_each_other_by_position_over_period() {
        let x = Array::from_f32(&[0.5, 0.5, 0.5, 0.5, 1.0, 2.0, 3.0, 4.0], &[1, 1, 2, 4]).unwrap();
        let turn = |a: f32, b: f32, angle: f32| {
            (a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin())
        };
        let (outer, inner) = (turn(1.0, 3.0, 6.0), turn(2.0, 4.0, 6.0 / 100.0));
        for device in [Device::Cpu, Device::Gpu] {
            let found = rotated(&rope(4, Scaling::Default, device), &[5], &x);
            check_close(&format!("{device:?}"), &found[4..], &[outer.0, inner.0, outer.1, inner.1]);
        }
    }

    #[test]
    fn dimensions_beyond_the_rotated_ones_stay_and_the_others_gain() {
        let x = Array::from_f32(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[1, 1, 1, 6]).unwrap();
        let scaling = || Scaling::Long {
            short: vec![1.0; 2],
            long: vec![1.0; 2],
            original_context: 9,
            attention_factor: 2.0,
        };
        for device in [Device::Cpu, Device::Gpu] {
            let found = rotated(&rope(6, scaling(), device), &[0], &x);
            check_close(&format!("{device:?}"), &found, &[2.0, 4.0, 6.0, 8.0, 5.0, 6.0]);
        }
    }

    #[test]
    fn every_sequence_turns_from_its_own_offset_with_its_own_periods() {
        let values: Vec<f32> = (0..48_u8).map(|i| (f32::from(i) * 0.37).sin()).collect();
        let x = Array::from_f32(&values, &[3, 2, 2, 4]).unwrap();
        let scaling = || Scaling::Long {
            short: vec![1.0, 2.0],
            long: vec![3.0, 0.5],
            original_context: 9,
            attention_factor: 1.5,
        };
        for device in [Device::Cpu, Device::Gpu] {
            let rope = rope(4, scaling(), device);
            for offsets in [[3, 3, 9], [0, 7, 0], [4, 4, 4]] {
                let alone: Vec<f32> = (0..)
                    .zip(&offsets)
                    .flat_map(|(row, &offset)| {
                        rotated(&rope, &[offset], &x.slice(&[row, 0, 0, 0], &[row + 1, 2, 2, 4]).unwrap())
                    })
                    .collect();
                check_close(&format!("{device:?} {offsets:?}"), &rotated(&rope, &offsets, &x), &alone);
            }
        }
    }
}
