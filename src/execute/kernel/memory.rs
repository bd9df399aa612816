//! Groups from and to the bytes of buffers. A result that is not read soon is stored past the caches.
//!
//! On x86-64 groups are moved by vectors of 16 bytes, which every such processor has: where the compiler sees the
//! elements, it moves them one by one.

#![cfg_attr(
    not(debug_assertions),
    expect(clippy::inline_always, reason = "compiled once for each set of instructions")
)]
#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "loads and stores of vectors"))]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_storeu_si128, _mm_stream_si128};

use super::bits::{Bits, GROUPS, Group, Stored};

/// Vectors of a group.
#[cfg(target_arch = "x86_64")]
const fn vectors<B: Bits>() -> usize {
    size_of::<Group<B>>() / size_of::<__m128i>()
}

/// Reads group `i` of a strip.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(in crate::execute) fn group<B: Bits>(stored: &Stored<B>, i: usize) -> Group<B> {
    let bytes: &Group<B::Bytes> = &stored.as_chunks().0[i];
    let mut group = [B::default(); _];
    #[cfg(target_arch = "x86_64")]
    {
        let (from, to): (*const __m128i, *mut __m128i) = (bytes.as_ptr().cast(), group.as_mut_ptr().cast());
        for i in 0..vectors::<B>() {
            // SAFETY: SSE2, which every x86-64 has; both are a group long, and neither needs alignment.
            unsafe { _mm_storeu_si128(to.add(i), _mm_loadu_si128(from.add(i))) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    for (bits, bytes) in group.iter_mut().zip(bytes) {
        *bits = B::from_bytes(*bytes);
    }
    group
}

/// A whole strip of a result.
pub(super) struct Target<'t, B: Bits> {
    groups: &'t mut [Group<B::Bytes>; GROUPS],
    /// Whether to store past the caches. Set only where the strip is aligned to 16 bytes.
    past_caches: bool,
}

impl<'t, B: Bits> Target<'t, B> {
    /// These bytes if they are a whole strip.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn whole(bytes: &'t mut [u8], past_caches: bool) -> Option<Self> {
        let stored: &mut Stored<B> = B::elements_mut(bytes).try_into().ok()?;
        let past_caches =
            past_caches && cfg!(target_arch = "x86_64") && stored.as_ptr().addr().is_multiple_of(16);
        Some(Self { groups: stored.as_chunks_mut().0.try_into().ok()?, past_caches })
    }

    /// Stores group `i`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn put(&mut self, i: usize, group: &Group<B>) {
        let out = &mut self.groups[i];
        #[cfg(target_arch = "x86_64")]
        {
            let (from, to): (*const __m128i, *mut __m128i) = (group.as_ptr().cast(), out.as_mut_ptr().cast());
            for i in 0..vectors::<B>() {
                // SAFETY: SSE2, which every x86-64 has; both are a group long. Stores past the caches need 16 bytes
                // aligned: `whole` checked the strip, and each vector is 16 bytes after the one before.
                unsafe {
                    let (vector, to) = (_mm_loadu_si128(from.add(i)), to.add(i));
                    if self.past_caches { _mm_stream_si128(to, vector) } else { _mm_storeu_si128(to, vector) }
                }
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        for (bytes, bits) in out.iter_mut().zip(group) {
            *bytes = bits.to_bytes();
        }
    }
}

/// Makes stores past the caches visible to every thread that later learns of them.
pub(super) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE, which every x86-64 has.
    unsafe {
        _mm_sfence();
    }
}
