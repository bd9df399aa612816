//! Memory limits and peak memory of the process.

use std::fs;
use std::thread::available_parallelism;

use rustix::process::{Resource, getrlimit};

use crate::diagnostic::bytes;
use crate::mlx;

/// Memory that the process can use, in bytes: the machine's, or a smaller limit of its control group or of the process.
/// `None` where the system does not say.
#[must_use]
pub(crate) fn total_memory() -> Option<u64> {
    let total = kilobytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")?;
    let limit = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let limit = limit.and_then(|limit| limit.trim().parse::<u64>().ok());
    let limits = limit.into_iter().chain(Limit::tightest().map(|limit| limit.room()));
    Some(limits.fold(total, u64::min))
}

/// A limit of the process is smaller than what the weights need.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the process is limited to {} of {of} (`ulimit {option}`), and the model needs {}",
    bytes(*limit),
    bytes(*needed)
)]
pub struct LimitError {
    /// What is limited: `address space` or `data`.
    pub of: &'static str,
    /// The option of the shell's `ulimit`.
    pub option: &'static str,
    /// The limit in bytes.
    pub limit: u64,
    /// The limit that would be enough, in bytes.
    pub needed: u64,
}

/// Refuses a limit of the process (`ulimit -v`, `ulimit -d`) that this many bytes of weights do not fit in: without
/// memory, the libraries that compute wait forever or end the program. A long context needs memory beyond that, which is
/// not known here.
///
/// # Errors
/// The limit and what would be enough.
pub(crate) fn check_limit(weights: u64) -> Result<(), LimitError> {
    match Limit::tightest() {
        Some(limit) if limit.room() < weights => {
            let Limit { of, option, most, taken } = limit;
            Err(LimitError { of, option, limit: most, needed: taken + weights })
        }
        _ => Ok(()),
    }
}

/// A limit of the process.
#[derive(Debug, Clone, Copy)]
struct Limit {
    of: &'static str,
    /// The shell's option for it.
    option: &'static str,
    /// The limit in bytes.
    most: u64,
    /// Bytes in use, and bytes that buffers and threads will need.
    taken: u64,
}

impl Limit {
    /// Bytes for libraries loaded on first use, buffers of matrix products, and results of steps.
    const BUFFERS: u64 = 512 << 20;
    /// Bytes per core for the stacks and allocator arenas of threads. MLX, its BLAS and rayon have a few threads per core.
    const THREADS: u64 = 128 << 20;

    /// The limit that leaves the least room, if there is one.
    fn tightest() -> Option<Self> {
        let limits = [
            (Resource::As, "address space", "-v", "VmSize:"),
            // Private writable memory.
            (Resource::Data, "data", "-d", "VmData:"),
        ];
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let cores = available_parallelism().map_or(1, |cores| cores.get() as u64);
        let limits = limits.into_iter().filter_map(|(resource, of, option, line)| {
            let most = getrlimit(resource).current?;
            let taken = kilobytes(&status, line)? + Self::BUFFERS + cores * Self::THREADS;
            Some(Self { of, option, most, taken })
        });
        limits.min_by_key(Self::room)
    }

    /// Bytes left for weights.
    fn room(&self) -> u64 {
        self.most.saturating_sub(self.taken)
    }
}

/// Peak resident memory of the process in bytes; where the system does not say, the peak of MLX.
#[must_use]
pub(crate) fn peak_memory() -> Option<u64> {
    let resident = fs::read_to_string("/proc/self/status").ok();
    let resident = resident.and_then(|status| kilobytes(&status, "VmHWM:"));
    resident.or_else(|| mlx::peak_memory().ok().map(|bytes| bytes as u64))
}

fn kilobytes(table: &str, name: &str) -> Option<u64> {
    let line = table.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_table_is_found_and_read_in_kilobytes() {
        let table = "MemFree:  12 kB\nMemTotal:       24123 kB\n";
        assert_eq!(kilobytes(table, "MemTotal:"), Some(24123 * 1024));
        assert_eq!(kilobytes(table, "VmHWM:"), None);
    }
}
