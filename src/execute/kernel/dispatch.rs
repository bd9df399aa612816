//! Chooses the widest instructions that this processor has.

#[cfg(target_arch = "x86_64")]
use super::avx2::Avx2;
use super::simd::{Scalar, Simd as _, Task};

/// Runs a task with the widest instructions of this processor.
pub(in crate::execute) fn run_widest<T: Task>(task: T) -> T::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = Avx2::detect() {
        return token.run(task);
    }
    Scalar.run(task)
}
