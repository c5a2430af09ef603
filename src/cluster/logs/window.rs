//! What is remembered of the lines that were delivered, so that a log that is read again can be told from a new one.

use std::collections::VecDeque;

use super::stamp::Stamp;

/// So many of the last lines are remembered one by one: 1 MiB. Those before them are only counted.
const LINES: usize = 65_536;
/// So many places to read again from are remembered: seconds in which a line was written, more than an hour of them.
const PLACES: usize = 4096;
/// As much of a line makes its [`Mark`].
pub(super) const MARKED: usize = 64 * 1024;
/// As much before the last line is read again, at least: a clock that steps back by less loses nothing.
const MARGIN_S: i64 = 1;

/// What a line is known by: its timestamp, and a hash (FNV-1a) of its first 64 KiB, with the end of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) stamp: Option<Stamp>,
    hash: u64,
    hashed: usize,
}

impl Mark {
    pub(super) fn new(stamp: Option<Stamp>) -> Mark {
        Mark {
            stamp,
            hash: 0xcbf2_9ce4_8422_2325,
            hashed: 0,
        }
    }

    /// Takes the line's next bytes.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        let room = MARKED - self.hashed;
        let bytes = bytes.get(..room).unwrap_or(bytes);
        self.hashed += bytes.len();
        for &byte in bytes {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    /// The mark of a line of which this much is known.
    pub(super) fn of(stamp: Option<Stamp>, content: &[u8]) -> Mark {
        let mut mark = Mark::new(stamp);
        mark.take(content);
        mark
    }
}

/// Two words a line: a million of them may come in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kept {
    nanoseconds: i64,
    hash: u64,
}

impl Kept {
    const UNSTAMPED: i64 = i64::MIN;

    fn new(mark: &Mark) -> Kept {
        Kept {
            nanoseconds: mark.stamp.map_or(Kept::UNSTAMPED, Stamp::nanoseconds),
            hash: mark.hash,
        }
    }
}

/// A place in the log from which it can be asked for again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// What the kubelet is asked for; `None`: the log from its beginning.
    pub(super) since: Option<i64>,
    /// The first line that it then gives, counted from the first that was ever delivered.
    pub(super) line: u64,
    pub(super) stamp: Option<Stamp>,
}

/// The lines that were delivered. Its size is bounded, however many there are.
#[derive(Debug, Default)]
pub(super) struct Window {
    count: u64,
    last: VecDeque<Kept>,
    first: Option<Option<Stamp>>,
    /// The first line of each second; only where no line after it is older than that second.
    places: VecDeque<Place>,
    newest: Option<Stamp>,
    latest: Option<Stamp>,
}

impl Window {
    /// A line begins.
    pub(super) fn begin(&mut self, stamp: Option<Stamp>) {
        self.first.get_or_insert(stamp);
        let Some(stamp) = stamp else { return };
        self.latest = Some(stamp);
        let second = stamp.second();
        while self.places.back().is_some_and(|p| p.since > Some(second)) {
            self.places.pop_back();
        }
        if self.newest.is_none_or(|newest| newest.second() < second) {
            self.places.push_back(Place {
                since: Some(second),
                line: self.count,
                stamp: Some(stamp),
            });
            if self.places.len() > PLACES {
                self.places.pop_front();
            }
        }
        self.newest = self.newest.max(Some(stamp));
    }

    /// The line that began has ended.
    pub(super) fn end(&mut self, mark: &Mark) {
        self.count += 1;
        if self.last.len() == LINES {
            self.last.pop_front();
        }
        self.last.push_back(Kept::new(mark));
    }

    /// How many lines have ended.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The newest timestamp of all, which need not be the last line's.
    pub(super) fn newest(&self) -> Option<Stamp> {
        self.newest
    }

    /// The timestamp of the last line.
    pub(super) fn latest(&self) -> Option<Stamp> {
        self.latest
    }

    /// Where to read again from: everything that comes from there on has come before, up to where it broke off.
    pub(super) fn place(&self) -> Place {
        let before = self.latest.map(|latest| latest.second() - MARGIN_S);
        let place = self.places.iter().rev().find(|p| p.since <= before);
        place.copied().unwrap_or(Place {
            since: None,
            line: 0,
            stamp: self.first.flatten(),
        })
    }

    /// The first line that is remembered by itself.
    fn start(&self) -> u64 {
        self.count - self.last.len() as u64
    }

    /// Whether this line was delivered, but is only counted.
    pub(super) fn only_counted(&self, line: u64) -> bool {
        line < self.start()
    }

    /// Whether the line with this number is the one with this mark.
    pub(super) fn is(&self, line: u64, mark: &Mark) -> bool {
        let at = line.checked_sub(self.start()).map(usize::try_from);
        matches!(at, Some(Ok(at)) if self.last.get(at) == Some(&Kept::new(mark)))
    }

    /// The first line with this mark, from the line with this number on.
    pub(super) fn find(&self, from: u64, mark: &Mark) -> Option<u64> {
        let kept = Kept::new(mark);
        let skip = usize::try_from(from.saturating_sub(self.start())).ok()?;
        let at = self.last.iter().skip(skip).position(|k| *k == kept)?;
        Some(self.start() + (skip + at) as u64)
    }

    /// The oldest timestamp of the lines that are remembered by themselves, where lines before them are not.
    pub(super) fn forgotten_before(&self) -> Option<i64> {
        let stamps = self.last.iter().map(|kept| kept.nanoseconds);
        let oldest = stamps.filter(|stamp| *stamp != Kept::UNSTAMPED).min();
        oldest.filter(|_| self.start() > 0)
    }
}
