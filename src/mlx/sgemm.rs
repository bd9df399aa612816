//! Matrix products of few rows, in place of the BLAS that libmlx brings.
//!
//! A general library copies a matrix into blocks before it multiplies, which pays for many rows. For the few of a decode
//! step it takes longer than the product. Weights lie row by row along what is summed, so that with few rows no copy
//! is needed: each weight is read once, in order, for all rows.
//!
//! libmlx looks `cblas_sgemm` up by its name and finds this one first, because it stands in the program. Whatever has
//! another form than x · Wᵀ with few rows goes on to the BLAS.
//!
//! A sum has one order, which depends on its length alone: so a row gives the same bits whatever other rows there are.

#![expect(unsafe_code, reason = "C's interface to matrix products, and vector instructions")]
#![expect(clippy::many_single_char_names, reason = "the letters that products of matrices have everywhere")]

mod avx2;

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `CblasRowMajor`.
const ROW_MAJOR: c_int = 101;
/// `CblasNoTrans`.
const AS_IS: c_int = 111;
/// `CblasTrans`.
const TRANSPOSED: c_int = 112;

/// With more rows than this a library that copies is faster.
const MOST_ROWS: usize = 32;
/// Multiplications from which on threads share them: what one does in some ten microseconds.
const ALONE: usize = 1 << 18;

/// The signature of `cblas_sgemm`.
type Sgemm = unsafe extern "C" fn(
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

/// y = x · Wᵀ, all row-major: x `[m, k]` with rows `ldx` apart, W `[n, k]` with rows `ldw` apart, y `[m, n]` with rows
/// `ldy` apart.
#[derive(Debug, Clone, Copy)]
struct Product {
    x: *const f32,
    ldx: usize,
    w: *const f32,
    ldw: usize,
    y: *mut f32,
    ldy: usize,
    m: usize,
    n: usize,
    k: usize,
}

// SAFETY: threads read x and W, and each writes columns of y that are its own.
unsafe impl Sync for Product {}

/// Takes care that the linker keeps the function below.
pub(super) fn install() {
    std::hint::black_box(cblas_sgemm as Sgemm);
}

/// y = α · op(a) · op(b) + β · y, as every BLAS has it (<https://www.netlib.org/blas/>).
///
/// # Safety
/// What a BLAS needs: matrices as large as the numbers say.
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
    let plain = alpha.to_bits() == 1.0_f32.to_bits() && beta == 0.0;
    if order == ROW_MAJOR && op_a == AS_IS && op_b == TRANSPOSED && plain && avx2::is_there() {
        let size = |n: c_int| usize::try_from(n).unwrap_or(0);
        let (m, n, k) = (size(m), size(n), size(k));
        if m <= MOST_ROWS {
            let product = Product { x: a, ldx: size(lda), w: b, ldw: size(ldb), y, ldy: size(ldy), m, n, k };
            // SAFETY: the caller's promise, and the processor has the instructions.
            unsafe { product.compute() };
            return;
        }
    }
    // SAFETY: the caller's promise.
    unsafe { blas()(order, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, y, ldy) }
}

/// The function of the same name in the library that libmlx was linked with.
fn blas() -> Sgemm {
    static NEXT: OnceLock<Sgemm> = OnceLock::new();
    *NEXT.get_or_init(|| {
        // SAFETY: a name that ends with NUL.
        let found: *mut c_void = unsafe { libc::dlsym(libc::RTLD_NEXT, c"cblas_sgemm".as_ptr()) };
        if found.is_null() {
            // libmlx could not have been loaded.
            std::process::abort();
        }
        // SAFETY: every BLAS gives the function of this name this signature.
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
        if threads < 2 || self.m * self.n * self.k < ALONE {
            // SAFETY: the caller's promise.
            unsafe { avx2::columns(self, 0, self.n) };
            return;
        }
        // More pieces than threads: one that comes late leaves its pieces to the others.
        let piece = self.n.div_ceil(threads * 8).next_multiple_of(avx2::WEIGHTS);
        let next = AtomicUsize::new(0);
        let work = || loop {
            let from = next.fetch_add(piece, Ordering::Relaxed);
            if from >= self.n {
                break;
            }
            // SAFETY: the caller's promise; no other thread gets these columns.
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
