//! [`Sums`]: what the figures of a comparison are computed from, tile by tile.

use rayon::prelude::*;

use super::comparison::{Figures, NotFinite, Verdict, is_float, width};
use crate::checkpoint::{Dtype, TensorInfo};
use crate::execute::kernel::{STRIP, Scalar, decode};
use crate::plan::cost::TILE;

/// Sums over the elements of a tensor.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    different: u64,
    max: f64,
    change: f64,
    first_square: f64,
    second_square: f64,
    dot: f64,
    not_finite: NotFinite,
    /// Whether any byte differs.
    bytes_differ: bool,
}

/// The sums over a window, tile by tile in their order.
pub(super) fn sums_of(a: (Dtype, &[u8]), b: (Dtype, &[u8])) -> Sums {
    let (a_width, b_width) = (width(a.0), width(b.0));
    let tiles: Vec<Sums> = (a.1.par_chunks(TILE * a_width), b.1.par_chunks(TILE * b_width))
        .into_par_iter()
        .map(|(a_tile, b_tile)| {
            let mut sums = Sums::new(a.0 != b.0 || a_tile != b_tile);
            if is_float(a.0) {
                sums.count_values((a.0, a_tile), (b.0, b_tile));
            } else if sums.bytes_differ {
                let pairs = a_tile.chunks(a_width).zip(b_tile.chunks(b_width));
                sums.different = pairs.filter(|(a, b)| a != b).count() as u64;
            }
            sums
        })
        .collect();
    let mut total = Sums::default();
    for tile in &tiles {
        total.add(tile);
    }
    total
}

impl Sums {
    /// No elements yet. `bytes_differ` says whether the bytes are known to differ.
    pub(super) fn new(bytes_differ: bool) -> Self {
        Self { bytes_differ, ..Self::default() }
    }

    fn count_values(&mut self, first: (Dtype, &[u8]), second: (Dtype, &[u8])) {
        // Bits distinguish zeros and NaNs; across dtypes, NaNs always differ in bits and count as equal.
        let same_dtype = first.0 == second.0;
        let (mut olds, mut news) = ([0f32; STRIP], [0f32; STRIP]);
        let strips = first.1.chunks(STRIP * width(first.0)).zip(second.1.chunks(STRIP * width(second.0)));
        for (old_bytes, new_bytes) in strips {
            let n = old_bytes.len() / width(first.0);
            decode(Scalar, first.0, old_bytes, &mut olds);
            decode(Scalar, second.0, new_bytes, &mut news);
            for (old, new) in olds[..n].iter().zip(&news[..n]) {
                let differs = old.to_bits() != new.to_bits();
                self.different += u64::from(differs && (same_dtype || !old.is_nan() || !new.is_nan()));
                let (old, new) = (f64::from(*old), f64::from(*new));
                let change = new - old;
                self.max = if change.abs() > self.max || change.is_nan() { change.abs() } else { self.max };
                self.change += change * change;
                self.first_square += old * old;
                self.second_square += new * new;
                self.dot += old * new;
            }
            // A change from or to a value that is not finite makes the sum not finite, for all strips that follow.
            if !self.change.is_finite() {
                self.not_finite.count(&olds[..n], &news[..n]);
            }
        }
    }

    pub(super) fn add(&mut self, next: &Self) {
        self.different += next.different;
        self.max = if next.max > self.max || next.max.is_nan() { next.max } else { self.max };
        self.change += next.change;
        self.first_square += next.first_square;
        self.second_square += next.second_square;
        self.dot += next.dot;
        self.not_finite.add(&next.not_finite);
        self.bytes_differ |= next.bytes_differ;
    }

    pub(super) fn verdict(&self, info: &TensorInfo) -> Verdict {
        if !self.bytes_differ {
            return Verdict::Equal;
        }
        let values = is_float(info.dtype);
        let figure = |value: f64| (values && value.is_finite()).then_some(value);
        Verdict::Differs(Figures {
            elements: info.shape.iter().map(|&n| n as u64).product(),
            different: self.different,
            max: figure(self.max),
            relative: figure(self.change.sqrt() / self.first_square.sqrt()),
            cosine: figure(self.dot / (self.first_square.sqrt() * self.second_square.sqrt()))
                .map(|cosine| cosine.clamp(-1.0, 1.0)),
            not_finite: (self.not_finite != NotFinite::default()).then_some(self.not_finite),
        })
    }
}

impl NotFinite {
    fn count(&mut self, first: &[f32], second: &[f32]) {
        for (side, (here, there)) in [(first, second), (second, first)].into_iter().enumerate() {
            for (one, other) in here.iter().zip(there) {
                self.nan[side] += u64::from(one.is_nan());
                self.infinite[side] += u64::from(one.is_infinite());
                self.only[side] += u64::from(!one.is_finite() && other.is_finite());
            }
        }
    }

    /// Adds other counts.
    pub(crate) fn add(&mut self, next: &Self) {
        for side in [0, 1] {
            self.nan[side] += next.nan[side];
            self.infinite[side] += next.infinite[side];
            self.only[side] += next.only[side];
        }
    }
}
