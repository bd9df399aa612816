//! [`Product`]: a matrix product that this module computes itself.

/// y = x · Wᵀ, all row-major: x `[m, k]` with rows `ldx` apart, W `[n, k]` with rows `ldw` apart, y `[m, n]` with rows
/// `ldy` apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Product {
    pub(super) x: *const f32,
    pub(super) ldx: usize,
    pub(super) w: *const f32,
    pub(super) ldw: usize,
    pub(super) y: *mut f32,
    pub(super) ldy: usize,
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
}

// SAFETY: threads read x and W, and each writes columns of y that are its own.
unsafe impl Sync for Product {}
