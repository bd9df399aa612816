//! Elements as they are stored, and strips of them.

#![expect(clippy::inline_always, reason = "compiled once for each set of instructions")]

use std::ops::{AddAssign, BitAnd};

use super::float::STRIP;
#[cfg(not(target_arch = "x86_64"))]
use super::lanes::gather;
use super::lanes::{GROUPS, Group};
#[cfg(target_arch = "x86_64")]
use super::wide;

/// The bits of an element.
pub(super) trait Bits:
    Copy + Ord + Default + AddAssign + BitAnd<Output = Self> + From<bool> + Into<u32>
{
    /// Every bit.
    const ALL: Self;
    /// All but the sign.
    const MAGNITUDE: Self;
    /// The same in a file, little-endian.
    type Bytes: Copy;
    fn from_bytes(bytes: Self::Bytes) -> Self;
    fn to_bytes(self) -> Self::Bytes;
    /// The elements that begin in these bytes.
    fn elements(bytes: &[u8]) -> &[Self::Bytes];
    fn elements_mut(bytes: &mut [u8]) -> &mut [Self::Bytes];
}

impl Bits for u16 {
    const ALL: Self = Self::MAX;
    const MAGNITUDE: Self = 0x7fff;
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
    const ALL: Self = Self::MAX;
    const MAGNITUDE: Self = 0x7fff_ffff;
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
    groups: &'t mut [Group<B::Bytes>; GROUPS],
    /// Whether nobody reads it soon, so that it need not go through the caches. Only if such stores can be used there.
    past_caches: bool,
}

impl<'t, B: Bits> Target<'t, B> {
    /// These bytes, if they are a whole strip.
    #[inline(always)]
    pub(super) fn whole(bytes: &'t mut [u8], past_caches: bool) -> Option<Self> {
        let stretch: &mut Stretch<B> = B::elements_mut(bytes).try_into().ok()?;
        let past_caches = past_caches && can_pass_caches(stretch.as_ptr().addr());
        Some(Self { groups: stretch.as_chunks_mut().0.try_into().ok()?, past_caches })
    }

    /// Stores the group number `i`.
    #[inline(always)]
    #[cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "stores past the caches"))]
    pub(super) fn put(&mut self, i: usize, group: &Group<B>) {
        // SAFETY: asked for before it was set.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            wide::store(group, &mut self.groups[i], self.past_caches);
        }
        #[cfg(not(target_arch = "x86_64"))]
        for (bytes, bits) in self.groups[i].iter_mut().zip(group) {
            *bytes = bits.to_bytes();
        }
    }
}

/// The largest magnitude of many groups, lane by lane.
pub(super) struct Highest<B: Bits>(Group<B>);

impl<B: Bits> Highest<B> {
    #[inline(always)]
    pub(super) fn new() -> Self {
        Self([B::default(); _])
    }

    /// With another group. By value, so that all stays in registers.
    #[inline(always)]
    pub(super) fn with(self, group: Group<B>) -> Self {
        let mut highest = self.0;
        for (highest, bits) in highest.iter_mut().zip(group) {
            *highest = (bits & B::MAGNITUDE).max(*highest);
        }
        Self(highest)
    }

    /// Whether all were less. A loop, because the closures of iterators are functions without the caller's
    /// instructions.
    #[inline(always)]
    pub(super) fn below(self, limit: B) -> bool {
        let mut below = true;
        for bits in self.0 {
            below &= bits < limit;
        }
        below
    }
}

/// Whether stores past the caches can be used there: they want 16 bytes aligned, as memory from malloc is.
#[inline(always)]
fn can_pass_caches(address: usize) -> bool {
    cfg!(target_arch = "x86_64") && address.is_multiple_of(16)
}

/// These bytes, if they are a whole strip. A length that the compiler knows makes loops over it fast.
#[inline(always)]
pub(super) fn whole<B: Bits>(bytes: &[u8]) -> Option<&Stretch<B>> {
    B::elements(bytes).try_into().ok()
}

/// The group number `i`.
#[inline(always)]
pub(super) fn group<B: Bits>(stretch: &Stretch<B>, i: usize) -> Group<B> {
    let bytes = &stretch.as_chunks().0[i];
    #[cfg(target_arch = "x86_64")]
    return wide::load(bytes);
    #[cfg(not(target_arch = "x86_64"))]
    return gather(|i| B::from_bytes(bytes[i]));
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
    if let Ok(stretch) = <&mut Stretch<B>>::try_from(B::elements_mut(bytes)) {
        for (bits, bytes) in bits.iter().zip(stretch) {
            *bytes = bits.to_bytes();
        }
        return;
    }
    for (bits, bytes) in bits.iter().zip(B::elements_mut(bytes)) {
        *bytes = bits.to_bytes();
    }
}
