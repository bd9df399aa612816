//! `strftime_now`: today's date for templates that tell the model. UTC, in English.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

const DAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The function.
pub(super) fn strftime_now(format: &str) -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    strftime(format, seconds)
}

/// Python's `strftime` for seconds since 1970; an unknown directive stays as it is.
fn strftime(format: &str, seconds: u64) -> String {
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    let half = if hour % 12 == 0 { 12 } else { hour % 12 };
    let (year, month, day, of_year) = civil(days);
    let (weekday, month_name) = (DAYS[to_index(days % 7)], MONTHS[to_index(month - 1)]);
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut directive = chars.next();
        let padded = directive != Some('-');
        if !padded {
            directive = chars.next();
        }
        let number = |value: u64, width: usize| {
            if padded { format!("{value:0width$}") } else { value.to_string() }
        };
        let text = match directive {
            Some('Y') => year.to_string(),
            Some('y') => number(year % 100, 2),
            Some('m') => number(month, 2),
            Some('d') => number(day, 2),
            Some('e') => format!("{day:2}"),
            Some('j') => number(of_year, 3),
            Some('H') => number(hour, 2),
            Some('I') => number(half, 2),
            Some('M') => number(minute, 2),
            Some('S') => number(second, 2),
            Some('p') => if hour < 12 { "AM" } else { "PM" }.to_owned(),
            Some('A') => weekday.to_owned(),
            Some('a') => weekday[..3].to_owned(),
            Some('B') => month_name.to_owned(),
            Some('b') => month_name[..3].to_owned(),
            Some('F') => format!("{year}-{month:02}-{day:02}"),
            Some('T') => format!("{hour:02}:{minute:02}:{second:02}"),
            Some('Z') => "UTC".to_owned(),
            Some('%') => "%".to_owned(),
            other => {
                // Writing to a string does not fail.
                let _ = write!(out, "%{}", if padded { "" } else { "-" });
                other.map(String::from).unwrap_or_default()
            }
        };
        out.push_str(&text);
    }
    out
}

/// Year, month, day and day of the year for days since 1970 in the Gregorian calendar.
fn civil(mut days: u64) -> (u64, u64, u64, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let of_year = days + 1;
    let mut month = 1;
    for length in [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1, of_year)
}

fn to_index(small: u64) -> usize {
    usize::try_from(small).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(seconds: u64, format: &str, expected: &str) {
        assert_eq!(strftime(format, seconds), expected);
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        check(0, "%A, %d %B %Y %T", "Thursday, 01 January 1970 00:00:00");
        check(951_782_400, "%F %j %a", "2000-02-29 060 Tue");
        check(1_735_689_599, "%d %b %Y, %I:%M %p", "31 Dec 2024, 11:59 PM");
        check(1_735_689_600, "%-d/%-m/%y", "1/1/25");
    }

    #[test]
    fn what_is_no_directive_stays() {
        check(0, "100%% %Q %-Q %", "100% %Q %-Q %");
    }
}
