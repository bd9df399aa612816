//! Matrix products with few rows, in place of the BLAS that libmlx is linked with.
//!
//! A BLAS copies a matrix into blocks before it multiplies, which pays off for many rows. For the few rows of a decode
//! step, copying takes longer than the product. Weights are stored along the dimension that is summed, so that no copy is
//! needed: each weight is read once, in order, for all rows.
//!
//! libmlx finds `cblas_sgemm` by name, first in the executable. The library only defines [`sgemm`], under no C name:
//! a program takes products over with [`export_sgemm!`](crate::export_sgemm), as `mlxcel` itself does. Products of another
//! form than x · Wᵀ with few rows go on to the BLAS.
//!
//! The order of a sum depends on its length alone, so that a row gives the same bits whatever other rows there are.

#![expect(unsafe_code, reason = "C's interface to matrix products, and vector instructions")]
#![expect(clippy::many_single_char_names, reason = "the letters that products of matrices have everywhere")]

mod avx2;
mod product;

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use product::Product;

/// `CblasRowMajor`.
const ROW_MAJOR: c_int = 101;
/// `CblasNoTrans`.
const AS_IS: c_int = 111;
/// `CblasTrans`.
const TRANSPOSED: c_int = 112;

/// Rows at most; with more, a BLAS is faster.
const MAX_ROWS: usize = 32;
/// Multiplications from which on threads share the work: about ten microseconds of one thread.
const MIN_SHARED: usize = 1 << 18;

/// The signature of `cblas_sgemm`.
pub type Sgemm = unsafe extern "C" fn(
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    f32,
    *const f32,
    c_int,
    *const f32,
    c_int,
    f32,
    *mut f32,
    c_int,
);

/// Exports [`sgemm`] as the C symbol `cblas_sgemm` of the program that calls this macro, where libmlx finds it before that
/// of its BLAS. For the root of an executable.
#[doc(hidden)]
#[macro_export]
macro_rules! export_sgemm {
    () => {
        #[expect(unsafe_code, reason = "a C symbol")]
        mod exported_sgemm {
            use ::std::ffi::c_int;

            /// Keeps the symbol: the linker sees no call of it.
            #[used]
            static KEPT: $crate::sgemm::Sgemm = cblas_sgemm;

            /// # Safety
            /// As for [`$crate::sgemm::sgemm`].
            #[unsafe(no_mangle)]
            unsafe extern "C" fn cblas_sgemm(
                order: c_int,
                op_a: c_int,
                op_b: c_int,
                m: c_int,
                n: c_int,
                k: c_int,
                alpha: f32,
                a: *const f32,
                lda: c_int,
                b: *const f32,
                ldb: c_int,
                beta: f32,
                y: *mut f32,
                ldy: c_int,
            ) {
                // SAFETY: the caller's promise.
                unsafe {
                    $crate::sgemm::sgemm(order, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, y, ldy);
                }
            }
        }
    };
}

/// y = α · op(a) · op(b) + β · y, as every BLAS computes it (<https://www.netlib.org/blas/>).
///
/// # Safety
/// The matrices are as large as the numbers say, as for a BLAS.
pub unsafe extern "C" fn sgemm(
    order: c_int,
    op_a: c_int,
    op_b: c_int,
    m: c_int,
    n: c_int,
    k: c_int,
    alpha: f32,
    a: *const f32,
    lda: c_int,
    b: *const f32,
    ldb: c_int,
    beta: f32,
    y: *mut f32,
    ldy: c_int,
) {
    let plain = alpha.to_bits() == 1.0_f32.to_bits() && beta == 0.0;
    if order == ROW_MAJOR && op_a == AS_IS && op_b == TRANSPOSED && plain && avx2::is_there() {
        let size = |n: c_int| usize::try_from(n).unwrap_or(0);
        let (m, n, k) = (size(m), size(n), size(k));
        if m <= MAX_ROWS {
            let product = Product { x: a, ldx: size(lda), w: b, ldw: size(ldb), y, ldy: size(ldy), m, n, k };
            // SAFETY: the caller's promise; `is_there` found AVX2 and FMA.
            unsafe { product.compute() };
            return;
        }
    }
    // SAFETY: the caller's promise.
    unsafe { blas()(order, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, y, ldy) }
}

/// The `cblas_sgemm` of the library that libmlx was linked with.
fn blas() -> Sgemm {
    static NEXT: OnceLock<Sgemm> = OnceLock::new();
    *NEXT.get_or_init(|| {
        // SAFETY: the name ends with NUL.
        let found: *mut c_void = unsafe { libc::dlsym(libc::RTLD_NEXT, c"cblas_sgemm".as_ptr()) };
        if found.is_null() {
            // Without it, libmlx could not have been loaded.
            std::process::abort();
        }
        // SAFETY: the function of this name has this signature in every BLAS.
        unsafe { std::mem::transmute::<*mut c_void, Sgemm>(found) }
    })
}

impl Product {
    /// # Safety
    /// Matrices as large as the numbers say, and a processor with AVX2 and FMA.
    unsafe fn compute(&self) {
        if self.m == 0 || self.n == 0 {
            return;
        }
        let threads = rayon::current_num_threads();
        if threads < 2 || self.m * self.n * self.k < MIN_SHARED {
            // SAFETY: the caller's promise, AVX2 and FMA included.
            unsafe { avx2::columns(self, 0, self.n) };
            return;
        }
        // More pieces than threads, so that a late thread leaves its pieces to the others.
        let piece = self.n.div_ceil(threads * 8).next_multiple_of(avx2::WEIGHTS);
        let next = AtomicUsize::new(0);
        let work = || loop {
            let from = next.fetch_add(piece, Ordering::Relaxed);
            if from >= self.n {
                break;
            }
            // SAFETY: the caller's promise, AVX2 and FMA included; no other thread gets these columns.
            unsafe { avx2::columns(self, from, self.n.min(from + piece)) };
        };
        rayon::in_place_scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|_| work());
            }
            work();
        });
    }
}

#[cfg(test)]
mod tests;
