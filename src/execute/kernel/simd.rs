//! Sixteen values at a time, in registers, with the instructions that a token proves.
//!
//! A [`Simd`] token is a value that exists only where its instructions do: [`Scalar`] anywhere, `Avx2` where the
//! processor was asked. Lanes come from a token alone, so that safe code cannot run an instruction that is not there.
//! All tokens give the same bits: no product and sum are contracted, and FMA is used only where the product is exact.

#![cfg_attr(
    not(debug_assertions),
    expect(clippy::inline_always, reason = "compiled once for each set of instructions")
)]

use std::ops::{Add, Mul, Sub};

use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

use super::bits::Group;

/// Sums in f64 over every eighth element: an order that vectors can keep.
pub(in crate::execute) type Partials = [f64; 8];

/// A working precision.
pub(in crate::execute) trait Work:
    Copy + Default + PartialEq + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self>
{
    const ZERO: Self;
    const ONE: Self;
    /// The smallest sum of a strip's squares in this precision that is accurate: below it, squares underflow.
    const MIN_SQUARES: f64;
    /// Exact.
    fn from_f32(value: f32) -> Self;
    /// Rounds.
    fn from_f64(value: f64) -> Self;
    /// Exact.
    fn to_f64(self) -> f64;
    fn is_finite(self) -> bool;
    fn is_nan(self) -> bool;
}

/// A group of values in registers.
pub(in crate::execute) trait Lanes<W>:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self>
{
    type Token: Simd;
    fn load(token: Self::Token, values: &Group<W>) -> Self;
    fn splat(token: Self::Token, value: W) -> Self;
    fn store(self) -> Group<W>;
    /// Adds each product with `other` to its sum. Rounds the product in f64, then the sum.
    fn add_products(self, other: Self, sums: &mut Partials);
    /// Adds each value to its sum.
    fn add_to(self, sums: &mut Partials);
}

/// Work that is compiled as a function of its own for a token's instructions.
///
/// In a large function the compiler keeps what a loop needs in memory: each loop that has to be fast is a task.
pub(in crate::execute) trait Task {
    type Output;
    /// Always inlined in release builds; otherwise it lacks the instructions.
    fn work<M: Simd>(self, token: M) -> Self::Output;
}

/// The proof that a set of instructions is there.
pub(in crate::execute) trait Simd: Copy {
    type F32s: Lanes<f32, Token = Self>;
    /// f32 in an order in which BF16 are quickly widened and narrowed.
    type Bf16s: Lanes<f32, Token = Self>;
    type F64s: Lanes<f64, Token = Self>;
    /// Does the work with these instructions.
    fn run<T: Task>(self, task: T) -> T::Output;
    /// Exact.
    fn widen_f16(self, bits: &Group<u16>) -> Self::F32s;
    /// To nearest, ties to even.
    fn narrow_f16(self, values: Self::F32s) -> Group<u16>;
    /// Exact.
    fn widen_bf16(self, bits: &Group<u16>) -> Self::Bf16s;
    /// To nearest, ties to even. The bits of a NaN are arbitrary unless it is a widened BF16.
    fn narrow_bf16(self, values: Self::Bf16s) -> Group<u16>;
    /// Exact.
    fn widen_f32(self, bits: &Group<u32>) -> Self::F64s;
    /// To nearest, ties to even.
    fn narrow_f32(self, values: Self::F64s) -> Group<u32>;
}

/// The instructions that every processor of the platform has, chosen by the compiler.
#[derive(Debug, Clone, Copy)]
pub(in crate::execute) struct Scalar;

impl Simd for Scalar {
    type F32s = Array<f32>;
    type Bf16s = Array<f32>;
    type F64s = Array<f64>;

    #[inline(never)]
    fn run<T: Task>(self, task: T) -> T::Output {
        task.work(self)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn widen_f16(self, bits: &Group<u16>) -> Array<f32> {
        let mut values = [0.0; _];
        bits.reinterpret_cast::<f16>().convert_to_f32_slice(&mut values);
        Array(values)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn narrow_f16(self, Array(values): Array<f32>) -> Group<u16> {
        let mut bits = [0; _];
        bits.reinterpret_cast_mut::<f16>().convert_from_f32_slice(&values);
        bits
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn widen_bf16(self, bits: &Group<u16>) -> Array<f32> {
        Array(gather(|i| f32::from_bits(u32::from(bits[i]) << 16)))
    }

    /// Adds just under half a unit, and a little more if the kept part is odd: ties go to even.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn narrow_bf16(self, Array(values): Array<f32>) -> Group<u16> {
        gather(|i| {
            let bits = values[i].to_bits();
            (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16
        })
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn widen_f32(self, bits: &Group<u32>) -> Array<f64> {
        Array(gather(|i| f64::from(f32::from_bits(bits[i]))))
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    #[expect(clippy::cast_possible_truncation, reason = "the one rounding")]
    fn narrow_f32(self, Array(values): Array<f64>) -> Group<u32> {
        gather(|i| (values[i] as f32).to_bits())
    }
}

/// Lanes that are left to the compiler.
#[derive(Clone, Copy)]
pub(in crate::execute) struct Array<W>(Group<W>);

impl<W: Work> Lanes<W> for Array<W> {
    type Token = Scalar;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn load(_: Scalar, values: &Group<W>) -> Self {
        Self(*values)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn splat(_: Scalar, value: W) -> Self {
        Self([value; _])
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn store(self) -> Group<W> {
        self.0
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn add_products(self, other: Self, sums: &mut Partials) {
        for (i, (value, other)) in self.0.iter().zip(&other.0).enumerate() {
            sums[i % 8] += value.to_f64() * other.to_f64();
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn add_to(self, sums: &mut Partials) {
        for (i, value) in self.0.iter().enumerate() {
            sums[i % 8] += value.to_f64();
        }
    }
}

macro_rules! elementwise {
    ($($trait:ident $function:ident $operator:tt),*) => {$(
        impl<W: Work> $trait for Array<W> {
            type Output = Self;

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn $function(self, other: Self) -> Self {
                Self(gather(|i| self.0[i] $operator other.0[i]))
            }
        }
    )*};
}

elementwise!(Add add +, Sub sub -, Mul mul *);

/// A group of what `element` gives for each index. The compiler vectorises this, but not [`std::array::from_fn`].
#[cfg_attr(not(debug_assertions), inline(always))]
fn gather<T: Copy + Default>(element: impl Fn(usize) -> T) -> Group<T> {
    let mut group = [T::default(); _];
    for (i, slot) in group.iter_mut().enumerate() {
        *slot = element(i);
    }
    group
}

impl Work for f32 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    // 1024 squares, each off by less than 2⁻¹⁴⁹.
    const MIN_SQUARES: f64 = 1e-30;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn from_f32(value: f32) -> Self {
        value
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    #[expect(clippy::cast_possible_truncation, reason = "parameters enter in working precision")]
    fn from_f64(value: f64) -> Self {
        value as Self
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn is_finite(self) -> bool {
        self.is_finite()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn is_nan(self) -> bool {
        self.is_nan()
    }
}

impl Work for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    // No square of an f32 underflows in f64.
    const MIN_SQUARES: f64 = 0.0;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn from_f32(value: f32) -> Self {
        Self::from(value)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn from_f64(value: f64) -> Self {
        value
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn to_f64(self) -> f64 {
        self
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn is_finite(self) -> bool {
        self.is_finite()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn is_nan(self) -> bool {
        self.is_nan()
    }
}
