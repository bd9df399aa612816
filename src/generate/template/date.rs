//! `strftime_now`: the current date for chat templates, in the local time zone and in English, as in transformers.

use jiff::fmt::strtime::{BrokenDownTime, Config, PosixCustom};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ZonedDateTime};

/// The template function. Without a known local time zone it uses UTC.
pub(super) fn strftime_now(format: &str) -> String {
    let zone = TimeZone::try_system().unwrap_or(TimeZone::UTC);
    strftime(format, &Timestamp::now().to_zoned_datetime(zone))
}

/// Python's `strftime` in the C locale; unknown directives are left as they are.
fn strftime(format: &str, time: &ZonedDateTime) -> String {
    let config = Config::new().custom(PosixCustom::new()).lenient(true);
    let formatted = BrokenDownTime::from(time).to_string_with_config(&config, format);
    formatted.unwrap_or_else(|_| format.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(seconds: i64, zone: &TimeZone, format: &str, expected: &str) {
        let time = Timestamp::from_second(seconds).unwrap().to_zoned_datetime(zone.clone());
        assert_eq!(strftime(format, &time), expected);
    }

    #[test]
    fn dates_are_formatted_as_in_python() {
        let utc = TimeZone::UTC;
        check(0, &utc, "%A, %d %B %Y %T", "Thursday, 01 January 1970 00:00:00");
        check(951_782_400, &utc, "%F %j %a", "2000-02-29 060 Tue");
        check(951_782_400, &utc, "%e|%-e|%d|%-j", "29|29|29|60");
        check(1_735_689_599, &utc, "%d %b %Y, %I:%M %p", "31 Dec 2024, 11:59 PM");
        check(1_735_689_600, &utc, "%-d/%-m/%y %e", "1/1/25  1");
        check(1_735_740_000, &utc, "%H:%M:%S %-I %p %Z", "14:00:00 2 PM UTC");
        check(1_735_740_000, &utc, "%c|%x|%X", "Wed Jan  1 14:00:00 2025|01/01/25|14:00:00");
    }

    #[test]
    fn dates_are_those_of_the_time_zone() {
        let tokyo = TimeZone::posix("JST-9").unwrap();
        check(1_735_740_000, &tokyo, "%d %b %Y %H:%M %Z %z", "01 Jan 2025 23:00 JST +0900");
        check(1_735_743_600, &tokyo, "%d %b %Y", "02 Jan 2025");
    }

    #[test]
    fn unknown_directives_are_left_as_they_are() {
        check(0, &TimeZone::UTC, "100%% %E %-E %", "100% %E %-E %");
    }
}
