//! Elements as they are stored, and strips of them.

#![expect(clippy::inline_always, reason = "compiled once for each set of instructions")]

use std::ops::{AddAssign, BitAnd};

use super::float::STRIP;

/// The bits of an element.
pub(super) trait Bits:
    Copy + Eq + Default + AddAssign + BitAnd<Output = Self> + From<bool> + Into<u32>
{
    /// The same in a file, little-endian.
    type Bytes: Copy;
    fn from_bytes(bytes: Self::Bytes) -> Self;
    fn to_bytes(self) -> Self::Bytes;
    /// The elements that begin in these bytes.
    fn elements(bytes: &[u8]) -> &[Self::Bytes];
    fn elements_mut(bytes: &mut [u8]) -> &mut [Self::Bytes];
}

impl Bits for u16 {
    type Bytes = [u8; 2];

    #[inline(always)]
    fn from_bytes(bytes: [u8; 2]) -> Self {
        Self::from_le_bytes(bytes)
    }

    #[inline(always)]
    fn to_bytes(self) -> [u8; 2] {
        self.to_le_bytes()
    }

    #[inline(always)]
    fn elements(bytes: &[u8]) -> &[[u8; 2]] {
        bytes.as_chunks().0
    }

    #[inline(always)]
    fn elements_mut(bytes: &mut [u8]) -> &mut [[u8; 2]] {
        bytes.as_chunks_mut().0
    }
}

impl Bits for u32 {
    type Bytes = [u8; 4];

    #[inline(always)]
    fn from_bytes(bytes: [u8; 4]) -> Self {
        Self::from_le_bytes(bytes)
    }

    #[inline(always)]
    fn to_bytes(self) -> [u8; 4] {
        self.to_le_bytes()
    }

    #[inline(always)]
    fn elements(bytes: &[u8]) -> &[[u8; 4]] {
        bytes.as_chunks().0
    }

    #[inline(always)]
    fn elements_mut(bytes: &mut [u8]) -> &mut [[u8; 4]] {
        bytes.as_chunks_mut().0
    }
}

/// A strip in a file.
pub(super) type Stretch<B> = [<B as Bits>::Bytes; STRIP];

/// Where a whole strip of a result goes.
pub(super) struct Target<'t, B: Bits> {
    pub(super) bytes: &'t mut Stretch<B>,
    /// Whether nobody reads it soon, so that it need not go through the caches.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "only x86-64 has such stores"))]
    pub(super) past_caches: bool,
}

/// These bytes, if they are a whole strip. A length that the compiler knows makes loops over it fast.
#[inline(always)]
pub(super) fn whole<B: Bits>(bytes: &[u8]) -> Option<&Stretch<B>> {
    B::elements(bytes).try_into().ok()
}

/// The same to write to.
#[inline(always)]
pub(super) fn whole_mut<B: Bits>(bytes: &mut [u8]) -> Option<&mut Stretch<B>> {
    B::elements_mut(bytes).try_into().ok()
}

/// Reads at most a strip. What it lacks becomes 0.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn load<B: Bits>(bytes: &[u8], bits: &mut [B; STRIP]) {
    if let Some(stretch) = whole::<B>(bytes) {
        for (bits, bytes) in bits.iter_mut().zip(stretch) {
            *bits = B::from_bytes(*bytes);
        }
        return;
    }
    bits.fill(B::default());
    for (bits, bytes) in bits.iter_mut().zip(B::elements(bytes)) {
        *bits = B::from_bytes(*bytes);
    }
}

/// Writes at most a strip.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn store<B: Bits>(bits: &[B; STRIP], bytes: &mut [u8]) {
    if let Some(stretch) = whole_mut::<B>(bytes) {
        for (bits, bytes) in bits.iter().zip(stretch) {
            *bytes = bits.to_bytes();
        }
        return;
    }
    for (bits, bytes) in bits.iter().zip(B::elements_mut(bytes)) {
        *bytes = bits.to_bytes();
    }
}
