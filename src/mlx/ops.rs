//! Lazy operations on arrays.

use super::{Array, Dtype, Error, Mask, Result, checked_len, lift, op};

// ---------------------------------------------------------------- shapes

impl Array {
    /// The same elements in another shape; one dimension may be -1.
    pub fn reshape(&self, shape: &[i32]) -> Result<Self> {
        lift(self.0.reshape(shape))
    }

    /// Its axes in another order.
    pub fn transpose(&self, axes: &[i32]) -> Result<Self> {
        lift(self.0.transpose_axes(axes))
    }

    /// The elements `start..stop` of every axis; `start` and `stop` have an entry for each axis.
    pub fn slice(&self, start: &[i32], stop: &[i32]) -> Result<Self> {
        let steps = self.unit_steps(start, stop)?;
        op(|out, stream| {
            // SAFETY: live handles; the three lists have as many entries as the array has axes.
            unsafe {
                mlx_sys::mlx_slice(
                    out,
                    self.0.as_ptr(),
                    start.as_ptr(),
                    start.len(),
                    stop.as_ptr(),
                    stop.len(),
                    steps.as_ptr(),
                    steps.len(),
                    stream,
                )
            }
        })
    }

    /// A copy with the elements `start..stop` of every axis overwritten; in place if this is the only handle when it is
    /// computed.
    pub fn updated(self, update: &Self, start: &[i32], stop: &[i32]) -> Result<Self> {
        let steps = self.unit_steps(start, stop)?;
        op(|out, stream| {
            // SAFETY: live handles; the three lists have as many entries as the array has axes.
            unsafe {
                mlx_sys::mlx_slice_update(
                    out,
                    self.0.as_ptr(),
                    update.0.as_ptr(),
                    start.as_ptr(),
                    start.len(),
                    stop.as_ptr(),
                    stop.len(),
                    steps.as_ptr(),
                    steps.len(),
                    stream,
                )
            }
        })
    }

    /// Its `count` entries along the first axis. Each keeps that axis.
    pub fn split(&self, count: i32) -> Result<Vec<Self>> {
        Ok(mlx_rs::ops::split_equal(&self.0, count, 0)?.into_iter().map(Array).collect())
    }

    /// Concatenates arrays along an axis.
    pub fn concatenate(arrays: &[&Self], axis: i32) -> Result<Self> {
        let parts: Vec<&mlx_rs::Array> = arrays.iter().map(|array| &array.0).collect();
        lift(mlx_rs::ops::concatenate(&parts, axis))
    }

    /// Rows (entries of axis 0) by index.
    pub fn rows(&self, indices: &Self) -> Result<Self> {
        lift(self.0.take_axis(&indices.0, 0))
    }

    /// A scalar axis length of 1 wherever `start` and `stop` name every axis.
    fn unit_steps(&self, start: &[i32], stop: &[i32]) -> Result<Vec<i32>> {
        let rank = self.shape().len();
        if start.len() != rank || stop.len() != rank {
            return Err(Error(format!("a slice of {} axes from {:?}", start.len(), self.shape())));
        }
        Ok(vec![1; rank])
    }
}

// ---------------------------------------------------------------- arithmetic

impl Array {
    /// The same values in another element type.
    pub fn cast(&self, dtype: Dtype) -> Result<Self> {
        if self.dtype() == dtype { Ok(self.clone()) } else { lift(self.0.as_dtype(dtype)) }
    }

    /// Element by element, broadcasting.
    pub fn add(&self, other: &Self) -> Result<Self> {
        lift(self.0.add(&other.0))
    }

    /// Clamps each element to −`bound`..`bound`.
    pub fn clipped(&self, bound: f32) -> Result<Self> {
        lift(mlx_rs::ops::clip(&self.0, (-bound, bound)))
    }

    /// Element by element, broadcasting.
    pub fn multiply(&self, other: &Self) -> Result<Self> {
        lift(self.0.multiply(&other.0))
    }

    /// Element by element, broadcasting.
    pub fn less(&self, other: &Self) -> Result<Self> {
        lift(self.0.lt(&other.0))
    }

    /// Element by element, broadcasting.
    pub fn less_or_equal(&self, other: &Self) -> Result<Self> {
        lift(self.0.le(&other.0))
    }

    /// Element by element, broadcasting.
    pub fn and(&self, other: &Self) -> Result<Self> {
        lift(self.0.logical_and(&other.0))
    }

    /// Element by element, broadcasting.
    pub fn divide(&self, other: &Self) -> Result<Self> {
        lift(self.0.divide(&other.0))
    }

    /// This where `condition` is true, else the other; broadcasting.
    pub fn or_where_not(&self, condition: &Self, other: &Self) -> Result<Self> {
        lift(mlx_rs::ops::select(&condition.0, &self.0, &other.0))
    }

    /// x · w, w in the dtype of x.
    pub fn scaled(&self, factor: f32) -> Result<Self> {
        self.multiply(&Self::scalar(factor).cast(self.dtype())?)
    }

    /// The hyperbolic tangent.
    pub fn tanh(&self) -> Result<Self> {
        lift(mlx_rs::ops::tanh(&self.0))
    }

    /// exp(x) / sum of exp(x) over the last axis, summed in f32.
    pub fn softmax(&self) -> Result<Self> {
        lift(mlx_rs::ops::softmax_axis(&self.0, -1, true))
    }

    /// The sum over an axis, which is removed.
    pub fn sum(&self, axis: i32) -> Result<Self> {
        lift(self.0.sum_axis(axis, false))
    }

    /// The indices of the `count` largest elements along the last axis (of 3), in any order, u32.
    pub fn largest_places(&self, count: i32) -> Result<Self> {
        let [rows, columns, width] = [self.dim(0), self.dim(1), self.dim(2)];
        let sorted = lift(mlx_rs::ops::argpartition_axis(&self.0, width - count, -1))?;
        sorted.slice(&[0, 0, width - count], &[rows, columns, width])
    }

    /// The elements at these indices along the last axis.
    pub fn at(&self, places: &Self) -> Result<Self> {
        lift(self.0.take_along_axis(&places.0, -1))
    }

    /// 1 / (1 + exp(-x)).
    pub fn sigmoid(&self) -> Result<Self> {
        lift(mlx_rs::ops::sigmoid(&self.0))
    }

    /// The largest absolute value, a scalar.
    pub fn largest(&self) -> Result<Self> {
        lift(lift(self.0.abs())?.0.max(false))
    }

    /// The largest element along the last axis, which is removed.
    pub fn highest(&self) -> Result<Self> {
        lift(self.0.max_axis(-1, false))
    }

    /// The index of the largest element along the last axis, u32.
    pub fn argmax(&self) -> Result<Self> {
        lift(mlx_rs::ops::indexing::argmax_axis(&self.0, -1, false))
    }

    /// The matrix product over the last two axes.
    pub fn matmul(&self, other: &Self) -> Result<Self> {
        lift(self.0.matmul(&other.0))
    }

    /// The matrix product with one of the matrices `[E, in, out]` for each entry of `indices`: x `[…, 1, 1, in]` or
    /// `[…, k, 1, in]` and indices u32 `[…, k]` → `[…, k, 1, out]`.
    pub fn matmul_of(&self, matrices: &Self, indices: &Self) -> Result<Self> {
        lift(mlx_rs::ops::gather_mm(&self.0, &matrices.0, None, &indices.0, false))
    }

    /// Root-mean-square normalization over the last axis (<https://arxiv.org/abs/1910.07467>).
    pub fn rms_norm(&self, weight: Option<&Self>, eps: f32) -> Result<Self> {
        lift(mlx_rs::fast::rms_norm(&self.0, weight.map(|weight| &weight.0), eps))
    }

    /// Rotary position embedding of the first `dims` of the last axis, in halves (<https://arxiv.org/abs/2104.09864>).
    /// Positions count along the axis before it, from `offsets`: one, or one for each entry of the first axis.
    ///
    /// `periods` are the reciprocals of the angular frequencies, f32 `[dims / 2]`.
    pub fn rope(&self, dims: i32, periods: &Self, offsets: &[i32]) -> Result<Self> {
        if let &[offset] = offsets {
            return lift(mlx_rs::fast::rope(&self.0, dims, false, None, 1.0, offset, &periods.0));
        }
        checked_len(offsets.len(), &[self.dim(0)])?;
        let offsets = mlx_rs::Array::from_slice(offsets, &[self.dim(0)]);
        lift(mlx_rs::fast::rope_dynamic(&self.0, dims, false, None, 1.0, offsets, &periods.0))
    }

    /// Attention: queries `[B, heads, T, d]`, keys and values `[B, kv_heads, S, d]`; heads share keys in groups.
    pub fn attention(&self, keys: &Self, values: &Self, scale: f32, mask: &Mask) -> Result<Self> {
        use mlx_rs::fast::ScaledDotProductAttentionMask::{Array as Allowed, Causal};
        let mask = match mask {
            Mask::Full => None,
            Mask::Causal => Some(Causal),
            Mask::Allowed(allowed) => Some(Allowed(&allowed.0)),
        };
        lift(mlx_rs::fast::scaled_dot_product_attention(&self.0, &keys.0, &values.0, scale, mask, None))
    }
}
