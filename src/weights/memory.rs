//! Memory of machine and process.

use std::fs;
use std::thread::available_parallelism;

use rustix::process::{Resource, getrlimit};

use crate::diagnostic::{Code, Diagnostic, bytes};
use crate::mlx;

/// The machine's memory in bytes, or what its control group or the process is allowed, where the system says.
#[must_use]
pub fn total_memory() -> Option<u64> {
    let total = kilobytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")?;
    let limit = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let limit = limit.and_then(|limit| limit.trim().parse::<u64>().ok());
    let limits = limit.into_iter().chain(Limit::tightest().map(|limit| limit.room()));
    Some(limits.fold(total, u64::min))
}

/// Refuses a limit of the process (`ulimit -v`, `ulimit -d`) that weights of so many bytes do not fit in. The libraries
/// that compute wait for ever, or end the program, when they get no memory. What a long context takes comes on top, and
/// is not known here.
///
/// # Errors
/// What is needed, and what there is.
pub(crate) fn check_limit(weights: u64) -> Result<(), Diagnostic> {
    match Limit::tightest() {
        Some(limit) if limit.room() < weights => {
            let Limit { of, option, most, taken } = limit;
            let needed = taken + weights;
            let message = format!(
                "the process may have {} of {of} (`ulimit {option}`), and the model needs {}",
                bytes(most),
                bytes(needed)
            );
            let help = format!(
                "raise the limit to {} or more (`ulimit {option} {}`)",
                bytes(needed),
                needed.div_ceil(1024)
            );
            Err(Diagnostic::new(Code::LimitExceeded, message).help(help))
        }
        _ => Ok(()),
    }
}

/// How much the process may have of something; far more than it has memory.
#[derive(Debug, Clone, Copy)]
struct Limit {
    of: &'static str,
    /// The shell's option for it.
    option: &'static str,
    most: u64,
    /// By what is loaded, and by threads that are going to start.
    taken: u64,
}

impl Limit {
    /// Libraries that are loaded when they are first used, buffers of products, results of steps.
    const BUFFERS: u64 = 512 << 20;
    /// The allocator's and the stack of a thread. MLX, its BLAS and rayon have a few for each core, most of them small.
    const THREADS: u64 = 128 << 20;

    /// The limit that leaves the least room, if there is one.
    fn tightest() -> Option<Self> {
        let limits = [
            (Resource::As, "addresses", "-v", "VmSize:"),
            // Private memory that can be written.
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

    /// What is left for weights.
    fn room(&self) -> u64 {
        self.most.saturating_sub(self.taken)
    }
}

/// The most bytes that the process has had resident; where the system does not say, the most that MLX has held.
#[must_use]
pub fn peak_memory() -> u64 {
    let resident = fs::read_to_string("/proc/self/status").ok();
    let resident = resident.and_then(|status| kilobytes(&status, "VmHWM:"));
    resident.unwrap_or_else(|| mlx::peak_memory().map_or(0, |bytes| bytes as u64))
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
