//! Reading a launch's log: what is shown, what is taken out of it, and whether it is complete.

use serde::Deserialize;

use super::record::{Collector, PREFIX, RecordError};
use super::strip::Stripper;
use super::summary::Summary;

/// A record line longer than this is not one of ours, and is shown.
const LONGEST_RECORD_LINE: usize = 64 * 1024;

/// Takes the bytes of a log as they come, in pieces of any size, and gives those to show: record lines are taken out,
/// control sequences are stripped (they can hide lines from a reader), everything else passes unchanged.
#[derive(Debug, Default)]
pub struct Follower {
    line: Line,
    strip: Stripper,
    records: Collector,
    lines: u64,
    bytes: u64,
}

/// What is known of the line that is being read.
#[derive(Debug, Default)]
enum Line {
    /// It may still turn out to be a record line.
    #[default]
    Start,
    Undecided(Vec<u8>),
    Shown,
}

impl Follower {
    /// Takes a piece of the log and gives what is to be shown of it.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.bytes += piece.len() as u64;
        let mut shown = Vec::with_capacity(piece.len());
        for &byte in piece {
            self.lines += u64::from(byte == b'\n');
            self.take(byte, &mut shown);
        }
        shown
    }

    fn take(&mut self, byte: u8, shown: &mut Vec<u8>) {
        match &mut self.line {
            Line::Shown => {
                self.strip.push(&[byte], shown);
                if byte == b'\n' {
                    self.line = Line::Start;
                }
            }
            Line::Start => {
                self.line = Line::Undecided(Vec::new());
                self.take(byte, shown);
            }
            Line::Undecided(held) if byte == b'\n' => {
                let held = std::mem::take(held);
                self.line = Line::Start;
                match held.strip_prefix(PREFIX.as_bytes()) {
                    Some(rest) => self.records.take(&String::from_utf8_lossy(rest)),
                    None => {
                        self.strip.push(&held, shown);
                        self.strip.push(b"\n", shown);
                    }
                }
            }
            Line::Undecided(held) => {
                held.push(byte);
                let common = held.len().min(PREFIX.len());
                let may_be_record = held[..common] == PREFIX.as_bytes()[..common];
                if !may_be_record || held.len() > LONGEST_RECORD_LINE {
                    let held = std::mem::take(held);
                    self.line = Line::Shown;
                    self.strip.push(&held, shown);
                }
            }
        }
    }

    /// The log has ended: gives what was held back of a last line without an end, and what was found.
    pub fn finish<T: for<'de> Deserialize<'de>>(mut self) -> (Vec<u8>, Followed<T>) {
        let mut shown = Vec::new();
        if let Line::Undecided(held) = std::mem::take(&mut self.line) {
            self.strip.push(&held, &mut shown);
        }
        self.strip.end(&mut shown);
        let followed = Followed {
            lines: self.lines,
            bytes: self.bytes,
            record: self.records.finish(),
        };
        (shown, followed)
    }
}

/// Keeps the last of presync's own lines that was shown: where a run fails, it names the cause.
#[derive(Debug, Default)]
pub struct LastLine {
    line: Vec<u8>,
    last: Option<String>,
}

impl LastLine {
    /// Takes a piece of the log as it is shown.
    pub fn push(&mut self, piece: &[u8]) {
        for &byte in piece {
            if byte == b'\n' {
                self.end_line();
            } else if self.line.len() < LONGEST_RECORD_LINE {
                self.line.push(byte);
            }
        }
    }

    /// The line without its `presync: `; `None` when there was none.
    pub fn finish(mut self) -> Option<String> {
        self.end_line();
        self.last
    }

    fn end_line(&mut self) {
        if let Some(text) = self.line.strip_prefix(b"presync: ") {
            self.last = Some(String::from_utf8_lossy(text).into_owned());
        }
        self.line.clear();
    }
}

/// What a log held beside what was shown.
#[derive(Debug)]
pub struct Followed<T> {
    lines: u64,
    bytes: u64,
    record: Result<Option<(T, String)>, RecordError>,
}

/// Whether everything that presync wrote has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Complete {
    /// Every line and byte, and the record where one was written.
    Yes,
    /// What is missing.
    No(String),
}

impl<T> Followed<T> {
    /// Compares what arrived with what presync says that it wrote.
    pub fn against(self, summary: &Summary) -> (Complete, Option<T>) {
        if (self.lines, self.bytes) != (summary.lines, summary.bytes) {
            let missing = format!(
                "{} lines ({} bytes) arrived of the {} lines ({} bytes) that were written",
                self.lines, self.bytes, summary.lines, summary.bytes
            );
            return (
                Complete::No(missing),
                self.record.ok().flatten().map(|r| r.0),
            );
        }
        match (self.record, &summary.record) {
            (Ok(None), None) => (Complete::Yes, None),
            (Ok(Some((record, digest))), Some(expected)) if digest == *expected => {
                (Complete::Yes, Some(record))
            }
            (Ok(_), _) => {
                let differs = "the record in the log is not the one that was written".to_owned();
                (Complete::No(differs), None)
            }
            (Err(error), _) => (Complete::No(error.to_string()), None),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::summary::Class;
    use super::*;

    fn shown(log: &[u8]) -> Vec<u8> {
        let mut follower = Follower::default();
        let mut shown = follower.push(log);
        shown.extend(follower.finish::<String>().0);
        shown
    }

    #[test]
    fn a_line_that_only_begins_like_a_record_is_shown() {
        assert_eq!(
            shown(b"presync-rec\npresync-record:x\npresync: y"),
            b"presync-rec\npresync-record:x\npresync: y"
        );
    }

    #[test]
    fn a_record_line_is_taken_out_even_between_others() {
        let (lines, digest) = super::super::record::encode(&"payload").unwrap();
        let log = format!("before\n{}\nafter\n", lines[0]);
        let mut follower = Follower::default();
        assert_eq!(follower.push(log.as_bytes()), b"before\nafter\n");
        let summary = Summary {
            presync: 1,
            class: Class::Done,
            lines: 3,
            bytes: log.len() as u64,
            record: Some(digest),
        };
        let (_, followed) = follower.finish::<String>();
        assert_eq!(
            followed.against(&summary),
            (Complete::Yes, Some("payload".to_owned()))
        );
    }

    #[test]
    fn a_log_that_lacks_a_line_is_not_complete() {
        let mut follower = Follower::default();
        follower.push(b"one\n");
        let summary = Summary {
            presync: 1,
            class: Class::Done,
            lines: 2,
            bytes: 8,
            record: None,
        };
        let (complete, _) = follower.finish::<String>().1.against(&summary);
        assert_eq!(
            complete,
            Complete::No(
                "1 lines (4 bytes) arrived of the 2 lines (8 bytes) that were written".to_owned()
            )
        );
    }

    #[test]
    fn the_last_line_of_presync_is_kept_and_what_terraform_prints_is_not() {
        let mut last = LastLine::default();
        last.push(b"presync: one\nError: x\npresy");
        last.push(b"nc: two\n  presync: a child's\n");
        assert_eq!(last.finish(), Some("two".to_owned()));
        assert_eq!(LastLine::default().finish(), None);
    }

    proptest! {
        #[test]
        fn how_the_log_is_cut_into_pieces_changes_nothing(
            log in proptest::collection::vec(
                prop_oneof![Just(0x1b_u8), Just(b'['), Just(b'\n'), Just(0xc2), Just(b'p'), any::<u8>()], 0..200),
            cuts in proptest::collection::vec(0_usize..200, 0..5),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(log.len())).collect();
            cuts.sort_unstable();
            cuts.push(log.len());
            let mut follower = Follower::default();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.extend(follower.push(&log[from..cut]));
                from = cut;
            }
            pieces.extend(follower.finish::<String>().0);
            prop_assert_eq!(pieces, shown(&log));
        }

        #[test]
        fn text_without_control_characters_passes_unchanged(text in "[^\\p{Cc}]{0,80}(\n[^\\p{Cc}]{0,80}){0,3}") {
            prop_assume!(!text.contains("presync-record: "));
            prop_assert_eq!(shown(text.as_bytes()), text.as_bytes());
        }
    }
}
