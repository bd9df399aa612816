//! [`bytes`]: sizes as people read them.

/// A size in decimal units with at most three significant digits: `184 kB`, `2.26 GB`.
///
/// `indicatif::DecimalBytes` always prints two decimals (`655.36 kB`, `1.00 kB`), which is more than a size is good for
/// and makes sizes of one magnitude differ in length.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(crate) fn bytes(count: u64) -> String {
    let (mut unit, mut size) = ("B", count as f64);
    for larger in ["kB", "MB", "GB", "TB", "PB"] {
        if size < 999.5 {
            break;
        }
        (unit, size) = (larger, size / 1000.0);
    }
    match unit {
        "B" => format!("{count} B"),
        _ if size < 9.995 => format!("{} {unit}", trimmed(&format!("{size:.2}"))),
        _ if size < 99.95 => format!("{} {unit}", trimmed(&format!("{size:.1}"))),
        _ => format!("{size:.0} {unit}"),
    }
}

fn trimmed(number: &str) -> &str {
    number.trim_end_matches('0').trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_at_most_three_digits() {
        for (count, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1 kB"),
            (183_600, "184 kB"),
            (999_499, "999 kB"),
            (999_500, "1 MB"),
            (23_800_000, "23.8 MB"),
            (2_262_000_000, "2.26 GB"),
            (u64::MAX, "18447 PB"),
        ] {
            assert_eq!(bytes(count), text);
        }
    }
}
