//! Memory of machine and process.

use std::fs;

use crate::mlx;

/// The machine's memory in bytes, or what its control group is allowed, where the system says.
#[must_use]
pub fn total_memory() -> Option<u64> {
    let total = kilobytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")?;
    let limit = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let limit = limit.and_then(|limit| limit.trim().parse::<u64>().ok());
    Some(limit.map_or(total, |limit| limit.min(total)))
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
