//! The kernel: one tile of a recipe, from bytes to bytes.
//!
//! ```text
//! edit(Recipe, Tile) ─┬─ nothing computed ─▶ copy
//!                     └─ strips ─▶ Evaluator: a pass for each step ─▶ bytes, Counters
//!                                  widen ▶ calculate ▶ count ▶ narrow, sixteen elements at a time
//! ```
//!
//! One evaluator serves every recipe. It is generic over a token that proves the instructions ([`simd`]), over the dtype
//! with its working precision ([`dtype`]) and over counting or not ([`counters`]). Copying and zeroing ([`copy`]) keep
//! bits as they are and stay beside it.
//!
//! - **A strip stays in a first-level cache.** A tile is evaluated in strips of 1,024 elements, a strip in groups of
//!   sixteen that go through a step in registers. Each pass is a function of its own ([`simd::Task`]), because in a large
//!   one the compiler keeps what loops need in memory.
//! - **Every sum has one order.** Eight interleaved lanes over fixed blocks, then the blocks from first to last, in f64.
//!   The squares of a recipe of one step are first added up over eight groups in working precision; a strip for which f32
//!   is too narrow is evaluated once more, all in f64.
//! - **All processors agree to the bit.** No product and sum are contracted, and FMA is used only where the product is
//!   exact. `Scalar` and `Avx2` are the same code over different lanes, and a test compares them.
//! - **Decoding is exact, encoding rounds once**, ties to even, and gives every computed NaN the same bits.
//! - **Each result is written once.** Base and donors are in buffers of a tile; the result goes past the caches unless it
//!   is hashed next.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod bits;
mod calculation;
mod copy;
mod counters;
mod dispatch;
mod dtype;
mod evaluate;
mod memory;
mod overflow;
mod pass;
mod simd;
mod strip;
mod tile;

pub(super) use bits::{GROUPS, STRIP, whole};
pub(super) use counters::{Counters, Outcome};
pub(super) use dispatch::run_widest;
pub(super) use dtype::decode;
pub(super) use memory::group;
pub(super) use simd::{Lanes, Partials, Scalar, Simd, Task};
pub(super) use strip::Tile;
pub(super) use tile::edit;
