//! How long is waited, and for what: rate limits as GitHub's headers say, faults a little longer each time.

use std::time::Duration;

use http::StatusCode;
use http::header::RETRY_AFTER;

use super::answer::{Answer, Meaning};

/// The lengths of all waits. A test counts in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// What stands for one second.
    pub second: Duration,
    /// Seconds that one request waits for rate limits in all.
    pub longest: u32,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            second: Duration::from_secs(1),
            longest: 900,
        }
    }
}

impl Patience {
    /// 1, 2, 4, … seconds, and never more than 30: GitHub's reads catch up with its writes in about that time.
    pub fn step(&self, number: u32) -> Duration {
        self.second * 2_u32.saturating_pow(number.min(5)).min(30)
    }

    pub(super) fn bound(&self) -> Duration {
        self.second * self.longest
    }
}

/// What an answer says about limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// Nothing.
    None,
    /// All that may be asked in an hour was asked; so many seconds are left.
    Primary(u64),
    /// Too much at once; so many seconds are to be waited, where GitHub says so.
    Secondary(Option<u64>),
}

/// Reads the limits of an answer
/// (<https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api#exceeding-the-rate-limit>). `now` is in seconds since 1970,
/// for an answer without a date.
pub(super) fn limit_of(answer: &Answer, now: u64) -> Limit {
    let limits = [StatusCode::FORBIDDEN, StatusCode::TOO_MANY_REQUESTS];
    if !limits.contains(&answer.status) {
        return Limit::None;
    }
    let number = |name: &str| {
        answer
            .header(name)
            .and_then(|text| text.parse::<u64>().ok())
    };
    if let Some(seconds) = number(RETRY_AFTER.as_str()) {
        return Limit::Secondary(Some(seconds));
    }
    if number("x-ratelimit-remaining") == Some(0)
        && let Some(reset) = number("x-ratelimit-reset")
    {
        // By the server's clock, since ours may be another.
        let now = answer.date().unwrap_or(now);
        return Limit::Primary(reset.saturating_sub(now) + 1);
    }
    if answer.status == StatusCode::TOO_MANY_REQUESTS || answer.meaning() == Meaning::SecondaryLimit
    {
        return Limit::Secondary(None);
    }
    Limit::None
}

/// How long one request has waited, and how long it waits next.
pub(super) struct Waits {
    patience: Patience,
    waited: Duration,
    limits: u32,
    faults: u32,
}

/// How often a request is sent that gets no answer of use.
pub(super) const TRIES: u32 = 5;

impl Waits {
    pub(super) fn new(patience: Patience) -> Waits {
        Waits {
            patience,
            waited: Duration::ZERO,
            limits: 0,
            faults: 0,
        }
    }

    /// How long is waited for a limit; `Err`: that is longer than the bound. A limit without a time is waited out for a minute, and
    /// then for twice as long each time, as GitHub asks for.
    pub(super) fn for_limit(&mut self, seconds: Option<u64>) -> Result<Duration, Duration> {
        let seconds = seconds.unwrap_or(60_u64.saturating_mul(1 << self.limits.min(10)));
        self.limits += 1;
        let wait = self.patience.second * u32::try_from(seconds.max(1)).unwrap_or(u32::MAX);
        if self.waited + wait > self.patience.bound() {
            return Err(wait);
        }
        self.waited += wait;
        Ok(wait)
    }

    /// How long is waited after a fault; `None`: it was tried often enough.
    pub(super) fn for_fault(&mut self) -> Option<Duration> {
        self.faults += 1;
        (self.faults < TRIES).then(|| self.patience.step(self.faults - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, headers: &[(&'static str, &str)], message: &str) -> Answer {
        let headers = headers
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()));
        Answer {
            status: StatusCode::from_u16(status).unwrap(),
            headers: headers.collect(),
            body: serde_json::json!({ "message": message }).to_string().into(),
        }
    }

    #[test]
    fn a_limit_is_read_from_the_headers_and_without_them_from_the_message() {
        let date = ("date", "Thu, 01 Jan 2026 00:00:00 GMT");
        let secondary = "You have exceeded a secondary rate limit. Please wait a few minutes.";
        for (answer, expected) in [
            (answer(200, &[("retry-after", "5")], ""), Limit::None),
            (
                answer(403, &[("retry-after", "5")], ""),
                Limit::Secondary(Some(5)),
            ),
            (
                answer(429, &[("retry-after", "7")], ""),
                Limit::Secondary(Some(7)),
            ),
            (
                // 30 s after the server's date; our clock says something else.
                answer(
                    403,
                    &[
                        ("x-ratelimit-remaining", "0"),
                        ("x-ratelimit-reset", "1767225630"),
                        date,
                    ],
                    "API rate limit exceeded",
                ),
                Limit::Primary(31),
            ),
            (
                answer(
                    429,
                    &[
                        ("x-ratelimit-remaining", "0"),
                        ("x-ratelimit-reset", "1010"),
                    ],
                    "",
                ),
                Limit::Primary(11),
            ),
            (
                answer(403, &[("x-ratelimit-remaining", "4000")], secondary),
                Limit::Secondary(None),
            ),
            (answer(429, &[], ""), Limit::Secondary(None)),
            (
                answer(403, &[], "Resource not accessible by personal access token"),
                Limit::None,
            ),
            (
                answer(403, &[], "Repository was archived so is read-only."),
                Limit::None,
            ),
        ] {
            assert_eq!(limit_of(&answer, 1000), expected, "{answer:?}");
        }
    }

    #[test]
    fn a_limit_without_a_time_is_waited_out_for_a_minute_and_then_longer_up_to_the_bound() {
        let mut waits = Waits::new(Patience::default());
        let waited: Vec<_> = std::iter::repeat_with(|| waits.for_limit(None))
            .take(4)
            .collect();
        let seconds = Duration::from_secs;
        assert_eq!(
            waited,
            [
                Ok(seconds(60)),
                Ok(seconds(120)),
                Ok(seconds(240)),
                Ok(seconds(480))
            ]
        );
        assert_eq!(waits.for_limit(None), Err(seconds(960)));
        assert_eq!(waits.for_limit(Some(1)), Err(seconds(1)));
    }

    #[test]
    fn a_fault_is_followed_by_four_more_tries_with_growing_waits() {
        let mut waits = Waits::new(Patience::default());
        let waited: Vec<_> = std::iter::from_fn(|| waits.for_fault()).collect();
        assert_eq!(waited, [1, 2, 4, 8].map(Duration::from_secs));
    }
}
