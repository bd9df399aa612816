//! Stored elements as bits, in strips and groups.

#![cfg_attr(
    not(debug_assertions),
    expect(clippy::inline_always, reason = "compiled once for each set of instructions")
)]

use std::ops::{AddAssign, BitAnd};

/// Elements that are evaluated together, in arrays that stay in a first-level cache. Divides the tile.
pub(in crate::execute) const STRIP: usize = 1024;

/// Elements that are in registers together.
pub(in crate::execute) type Group<T> = [T; 16];

/// Groups of a strip.
pub(in crate::execute) const GROUPS: usize = STRIP / size_of::<Group<u8>>();

/// The bits of a stored element.
pub(in crate::execute) trait Bits:
    Copy + Ord + Default + AddAssign + BitAnd<Output = Self> + From<bool> + Into<u32> + 'static
{
    /// Every bit.
    const ALL: Self;
    /// All bits but the sign.
    const MAGNITUDE: Self;
    /// The little-endian bytes of a file.
    type Bytes: Copy;
    fn from_bytes(bytes: Self::Bytes) -> Self;
    fn to_bytes(self) -> Self::Bytes;
    /// The whole elements in these bytes.
    fn elements(bytes: &[u8]) -> &[Self::Bytes];
    fn elements_mut(bytes: &mut [u8]) -> &mut [Self::Bytes];
}

macro_rules! bits {
    ($bits:ty, $width:literal) => {
        impl Bits for $bits {
            const ALL: Self = Self::MAX;
            const MAGNITUDE: Self = Self::MAX >> 1;
            type Bytes = [u8; $width];

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn from_bytes(bytes: Self::Bytes) -> Self {
                Self::from_le_bytes(bytes)
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn to_bytes(self) -> Self::Bytes {
                self.to_le_bytes()
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn elements(bytes: &[u8]) -> &[Self::Bytes] {
                bytes.as_chunks().0
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn elements_mut(bytes: &mut [u8]) -> &mut [Self::Bytes] {
                bytes.as_chunks_mut().0
            }
        }
    };
}

bits!(u16, 2);
bits!(u32, 4);

/// A whole strip as a file has it.
pub(in crate::execute) type Stored<B> = [<B as Bits>::Bytes; STRIP];

/// These bytes if they are a whole strip. A length that the compiler knows makes loops over it fast.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(in crate::execute) fn whole<B: Bits>(bytes: &[u8]) -> Option<&Stored<B>> {
    B::elements(bytes).try_into().ok()
}

/// Reads at most a strip. Missing elements become 0.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(in crate::execute) fn load<B: Bits>(bytes: &[u8], bits: &mut [B; STRIP]) {
    if let Some(stored) = whole::<B>(bytes) {
        for (bits, bytes) in bits.iter_mut().zip(stored) {
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
pub(in crate::execute) fn store<B: Bits>(bits: &[B; STRIP], bytes: &mut [u8]) {
    if let Ok(stored) = <&mut Stored<B>>::try_from(B::elements_mut(bytes)) {
        for (bits, bytes) in bits.iter().zip(stored) {
            *bytes = bits.to_bytes();
        }
        return;
    }
    for (bits, bytes) in bits.iter().zip(B::elements_mut(bytes)) {
        *bytes = bits.to_bytes();
    }
}

/// The largest magnitude of many groups, lane by lane.
pub(super) struct Highest<B: Bits>(Group<B>);

impl<B: Bits> Highest<B> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn new() -> Self {
        Self([B::default(); _])
    }

    /// Includes another group. By value, so that all stays in registers.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn with(self, group: Group<B>) -> Self {
        let mut highest = self.0;
        for (highest, bits) in highest.iter_mut().zip(group) {
            *highest = (bits & B::MAGNITUDE).max(*highest);
        }
        Self(highest)
    }

    /// Whether all were less. A loop, because the closures of iterators are functions without the caller's
    /// instructions.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn below(self, limit: B) -> bool {
        let mut below = true;
        for bits in self.0 {
            below &= bits < limit;
        }
        below
    }
}
