//! The timestamp that the kubelet puts before a line.

use std::fmt;

use jiff::Timestamp;

/// The longest one, with its space: nine digits of a second and a numeric offset.
pub(super) const LONGEST: usize = 36;

/// When a line was written, by its node's clock, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(i64);

impl Stamp {
    /// The whole second that it lies in.
    pub(super) fn second(self) -> i64 {
        self.0.div_euclid(1_000_000_000)
    }

    pub(super) fn nanoseconds(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Timestamp::from_nanosecond(i128::from(self.0)) {
            Ok(time) => write!(f, "{time}"),
            Err(_) => write!(f, "{} ns", self.0),
        }
    }
}

/// What stands at the beginning of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// More bytes are needed to tell.
    Undecided,
    /// A timestamp, and behind it, from this byte on, what the container wrote.
    Stamped(Stamp, usize),
    /// Anything else.
    Unstamped,
}

/// Looks for a timestamp at the beginning of a line: RFC 3339 with up to nine digits of a second, and one space.
pub(super) fn beginning(line: &[u8]) -> Beginning {
    const SHAPE: &[u8] = b"0000-00-00T00:00:00";
    let fits = |(byte, shape): (&u8, &u8)| match shape {
        b'0' => byte.is_ascii_digit(),
        _ => byte == shape,
    };
    if !line.iter().zip(SHAPE).all(fits) {
        return Beginning::Unstamped;
    }
    let head = line.get(..LONGEST).unwrap_or(line);
    match head.iter().position(|byte| matches!(byte, b' ' | b'\n')) {
        Some(end) if head.get(end) == Some(&b' ') => {
            let time = head.get(..end).and_then(parse);
            time.map_or(Beginning::Unstamped, |stamp| {
                Beginning::Stamped(stamp, end + 1)
            })
        }
        None if line.len() < LONGEST => Beginning::Undecided,
        _ => Beginning::Unstamped,
    }
}

fn parse(text: &[u8]) -> Option<Stamp> {
    let time: Timestamp = std::str::from_utf8(text).ok()?.parse().ok()?;
    i64::try_from(time.as_nanosecond()).ok().map(Stamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamped(line: &str) -> Option<(String, usize)> {
        match beginning(line.as_bytes()) {
            Beginning::Stamped(stamp, end) => Some((stamp.to_string(), end)),
            Beginning::Undecided | Beginning::Unstamped => None,
        }
    }

    #[test]
    fn a_timestamp_is_read_with_nine_digits_fewer_or_none_and_with_a_nodes_own_offset() {
        let at = |text: &str, end| Some((text.to_owned(), end));
        assert_eq!(
            stamped("2016-10-06T00:17:09.669794202Z log"),
            at("2016-10-06T00:17:09.669794202Z", 31)
        );
        assert_eq!(
            stamped("2016-10-06T00:17:09.66Z "),
            at("2016-10-06T00:17:09.66Z", 24)
        );
        assert_eq!(
            stamped("2016-10-06T02:17:09.000000000+02:00 x"),
            at("2016-10-06T00:17:09Z", 36)
        );
    }

    #[test]
    fn what_only_looks_like_a_timestamp_is_text() {
        for line in [
            "2016-10-06 00:17:09Z x",
            "2016-10-06T00:17:09.669794202Z\nx",
            "2016-10-06T00:17:09.6697942021234567890 x",
            "2016-13-06T00:17:09Z x",
            "\nx",
            "unable to retrieve container logs",
        ] {
            assert_eq!(beginning(line.as_bytes()), Beginning::Unstamped, "{line}");
        }
        for line in ["", "2016-10", "2016-10-06T00:17:09.669794202Z"] {
            assert_eq!(beginning(line.as_bytes()), Beginning::Undecided, "{line}");
        }
    }
}
