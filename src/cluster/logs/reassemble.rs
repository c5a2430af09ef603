//! One log out of the streams that it was read in: every line once and in order, whatever cut them.
//!
//! The kubelet gives a log from a whole second on, with the time before each line, and nothing else to find a place by. So
//! each new stream begins with lines that were delivered before. They are dropped by their place, as long as they are
//! what was delivered from there; where the kubelet has rotated the log meanwhile, they are looked for. A line that was
//! cut goes on at its next byte. Where what comes does not join what was delivered, a [`Gap`] stands.

use std::fmt;

use super::stamp::{Beginning, LONGEST, Stamp, beginning};
use super::window::{MARKED, Mark, Place, Window};

/// A line whose end is kept, since it may stand in two files: the runtime splits lines, at 16 KiB by default.
const SPLIT: u64 = 4096;
/// The kubelet's own words within a log are shorter than this.
const LONGEST_ASIDE: usize = 4096;

/// A piece of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Exactly what the container wrote.
    Bytes(Vec<u8>),
    /// Here something may be missing.
    Gap(Gap),
}

/// A place where the log could not be joined: the kubelet no longer had what stood here. It may have been nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// When the last line before it was written.
    pub after: Option<Stamp>,
    /// When the first line behind it was written.
    pub before: Option<Stamp>,
    /// The last line before it has no end.
    pub within_line: bool,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("lines of the log may be missing here")?;
        match (self.after, self.before) {
            (Some(after), Some(before)) => write!(f, ", between {after} and {before}"),
            (Some(after), None) => write!(f, ", after {after}"),
            (None, _) => Ok(()),
        }
    }
}

/// How much was delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Ends of lines.
    pub lines: u64,
    /// Bytes.
    pub bytes: u64,
    /// Places where something may be missing.
    pub gaps: u64,
}

/// Whether the end of the log was seen together with what was delivered before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Nothing stands behind what was delivered.
    Seen,
    /// The last stream ended before it came to what was delivered last: there may be more.
    NotSeen,
}

/// Puts the log together. Holds at most 192 KiB of it, and about 1.2 MiB of marks, whatever the log is.
#[derive(Debug, Default)]
pub struct Reassembly {
    window: Window,
    open: Option<Open>,
    state: State,
    /// The beginning of a line of which it is not known yet what it is.
    head: Vec<u8>,
    /// The end of the last line, where it is a long one.
    ending: Vec<u8>,
    delivered: Delivered,
}

/// The last line that was delivered, while it has no end.
#[derive(Debug)]
struct Open {
    mark: Mark,
    length: u64,
}

impl Open {
    fn new(stamp: Option<Stamp>) -> Open {
        Open {
            mark: Mark::new(stamp),
            length: 0,
        }
    }

    /// Whether a line that begins with this is the one.
    fn is(&self, stamp: Option<Stamp>, content: &[u8]) -> bool {
        let known = usize::try_from(self.length).map_or(MARKED, |length| length.min(MARKED));
        let begins = content.get(..known);
        begins.is_some_and(|known| Mark::of(stamp, known) == self.mark)
    }
}

/// Where in the stream it is.
#[derive(Clone, Copy, Debug, Default)]
enum State {
    /// A new line begins, with what the head holds.
    #[default]
    Start,
    /// In a new line: its bytes are delivered.
    Within,
    /// A line begins that may have come before.
    Again(Again),
    /// In such a line: its bytes are dropped.
    Dropped(Again),
    /// In the open line: as many bytes of it came before.
    Skipped(u64),
}

/// How far what is read again has come.
#[derive(Clone, Copy, Debug)]
struct Again {
    place: Place,
    /// No line of the stream had a place yet.
    first: bool,
    /// The number of the next line, if this goes on as it was delivered.
    at: Option<u64>,
    forgotten: Option<i64>,
}

impl Reassembly {
    /// Begins a stream, and tells from which second on it is to be asked for; `None`: from the beginning of the log.
    pub fn resume(&mut self) -> Option<i64> {
        self.head.clear();
        let place = self.window.place();
        self.state = State::Again(Again {
            place,
            first: true,
            at: Some(place.line),
            forgotten: self.window.forgotten_before(),
        });
        if self.window.count() == 0 && self.open.is_none() {
            self.state = State::Start;
        }
        place.since
    }

    /// Takes the next piece of the stream, of any size.
    pub fn push(&mut self, piece: &[u8]) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut rest = piece;
        while !rest.is_empty() {
            let line = rest.iter().position(|b| *b == b'\n').map(|at| at + 1);
            let most = line.unwrap_or(rest.len());
            let taken = match self.state {
                State::Start => self.hold(rest, most.min(LONGEST_ASIDE), &mut parts),
                State::Again(_) => self.hold(rest, most.min(LONGEST + MARKED), &mut parts),
                State::Within => {
                    self.deliver(rest.get(..most).unwrap_or_default(), &mut parts);
                    most
                }
                State::Dropped(again) => {
                    if line.is_some() {
                        self.state = self.next(again);
                    }
                    most
                }
                State::Skipped(left) => {
                    let left = usize::try_from(left).unwrap_or(usize::MAX);
                    if line.is_some_and(|end| end <= left) {
                        // It is not the line that was delivered.
                        self.gap(None, &mut parts);
                        self.state = State::Start;
                        most
                    } else {
                        let skipped = most.min(left);
                        self.state = if skipped == left {
                            State::Within
                        } else {
                            State::Skipped((left - skipped) as u64)
                        };
                        skipped
                    }
                }
            };
            rest = rest.get(taken..).unwrap_or_default();
        }
        parts
    }

    /// Whether the stream has come to what was not delivered before.
    pub fn caught_up(&self) -> bool {
        matches!(self.state, State::Start | State::Within)
    }

    /// How much was delivered.
    pub fn delivered(&self) -> Delivered {
        self.delivered
    }

    /// The stream has ended: what the kubelet said at its end, in place of more of the log. It writes its errors there,
    /// without a timestamp and without an end of line.
    pub fn aside(&self) -> Option<String> {
        let unstamped = matches!(self.state, State::Start | State::Again(_))
            && !self.head.is_empty()
            && beginning(&self.head) == Beginning::Unstamped;
        unstamped.then(|| String::from_utf8_lossy(&self.head).into_owned())
    }

    /// The last stream has ended, and the log with it: gives what was held back of it.
    pub fn finish(&mut self) -> (Vec<Part>, Tail) {
        let mut parts = Vec::new();
        let State::Again(_) = self.state else {
            let tail = if self.caught_up() {
                Tail::Seen
            } else {
                Tail::NotSeen
            };
            return (parts, tail);
        };
        let Beginning::Stamped(stamp, from) = beginning(&self.head) else {
            return (parts, Tail::NotSeen);
        };
        let content = self.head.split_off(from);
        if self.go_on(Some(stamp), &content, &mut parts) {
            return (parts, Tail::Seen);
        }
        if self.window.newest() < Some(stamp) {
            self.new_line(Some(stamp), &content, &mut parts);
            return (parts, Tail::Seen);
        }
        (parts, Tail::NotSeen)
    }

    /// Adds to the head as much as it has room for, and decides what the line is once that can be told.
    fn hold(&mut self, rest: &[u8], most: usize, parts: &mut Vec<Part>) -> usize {
        let limit = match self.state {
            State::Again(_) => LONGEST + MARKED,
            _ => LONGEST_ASIDE,
        };
        let taken = most.min(limit - self.head.len());
        self.head
            .extend_from_slice(rest.get(..taken).unwrap_or_default());
        let ended = self.head.ends_with(b"\n");
        let (stamp, from) = match beginning(&self.head) {
            Beginning::Undecided => return taken,
            Beginning::Stamped(stamp, from) => (Some(stamp), from),
            Beginning::Unstamped if !ended && self.head.len() < LONGEST_ASIDE => return taken,
            Beginning::Unstamped => (None, 0),
        };
        let mut head = std::mem::take(&mut self.head);
        let content = head.get(from..).unwrap_or_default();
        let decided = match self.state {
            State::Again(again) => {
                self.again(again, stamp, content, ended || head.len() == limit, parts)
            }
            _ => {
                self.start_line(stamp, content, parts);
                true
            }
        };
        if decided {
            head.clear();
        }
        self.head = head;
        taken
    }

    /// Decides what a line is that may have come before, if that can be told. `all`: no more of it will be held.
    fn again(
        &mut self,
        mut again: Again,
        stamp: Option<Stamp>,
        content: &[u8],
        all: bool,
        parts: &mut Vec<Part>,
    ) -> bool {
        let ended = content.ends_with(b"\n");
        if again.first && again.place.since.is_some() {
            // The end of a line whose beginning is older than what was asked for; old kubelets put a time before it.
            if stamp.is_none() || stamp < again.place.stamp {
                self.state = if ended {
                    State::Again(again)
                } else {
                    State::Dropped(again)
                };
                return true;
            }
        }
        if again.at == Some(self.window.count()) && self.go_on(stamp, content, parts) {
            return true;
        }
        if !all {
            return false;
        }
        if again.first && stamp != again.place.stamp {
            again.at = None;
        }
        let first = std::mem::take(&mut again.first);
        let mark = Mark::of(stamp, content);
        let counted = |line| self.window.only_counted(line) && stamp <= self.window.newest();
        let forgotten = stamp.map(Stamp::nanoseconds) < again.forgotten;
        let known = match again.at {
            Some(line) if counted(line) || self.window.is(line, &mark) => Some(line),
            _ if forgotten => None,
            from => self.window.find(from.unwrap_or(0), &mark),
        };
        if known.is_none() && self.go_on(stamp, content, parts) {
            return true;
        }
        again.at = known.map(|line| line + 1);
        let mut old = known.is_some();
        if !old && first && ended && self.open.is_none() && self.ending.ends_with(content) {
            again.at = Some(self.window.count());
            old = true;
        }
        // A file may begin within a line that was delivered long ago. A line without a time is never a new one's beginning.
        old |= stamp.is_none() || (first && stamp <= self.window.newest());
        old |= forgotten;
        if !old {
            self.new_line(stamp, content, parts);
        } else if ended {
            self.state = self.next(again);
        } else {
            self.state = State::Dropped(again);
        }
        true
    }

    /// What follows a line that came before.
    fn next(&self, again: Again) -> State {
        if again.at == Some(self.window.count()) && self.open.is_none() {
            State::Start
        } else {
            State::Again(again)
        }
    }

    /// Goes on in the open line, if this is its beginning.
    fn go_on(&mut self, stamp: Option<Stamp>, content: &[u8], parts: &mut Vec<Part>) -> bool {
        let Some(open) = self.open.as_ref().filter(|open| open.is(stamp, content)) else {
            return false;
        };
        let left = open.length.saturating_sub(content.len() as u64);
        if left > 0 {
            self.state = State::Skipped(left);
            return true;
        }
        let came = usize::try_from(open.length).unwrap_or(content.len());
        self.state = State::Within;
        self.deliver(content.get(came..).unwrap_or_default(), parts);
        true
    }

    /// A line that does not join what was delivered.
    fn new_line(&mut self, stamp: Option<Stamp>, content: &[u8], parts: &mut Vec<Part>) {
        self.gap(stamp, parts);
        self.start_line(stamp, content, parts);
    }

    fn start_line(&mut self, stamp: Option<Stamp>, content: &[u8], parts: &mut Vec<Part>) {
        self.window.begin(stamp);
        self.ending.clear();
        self.open = Some(Open::new(stamp));
        self.state = State::Within;
        self.deliver(content, parts);
    }

    fn gap(&mut self, before: Option<Stamp>, parts: &mut Vec<Part>) {
        self.delivered.gaps += 1;
        parts.push(Part::Gap(Gap {
            after: self.window.latest(),
            before,
            within_line: self.open.take().is_some_and(|open| open.length > 0),
        }));
    }

    /// Gives bytes of the line that is open; at most its last one ends it.
    fn deliver(&mut self, bytes: &[u8], parts: &mut Vec<Part>) {
        let (Some(open), false) = (&mut self.open, bytes.is_empty()) else {
            return;
        };
        open.mark.take(bytes);
        open.length += bytes.len() as u64;
        if open.length > SPLIT {
            self.ending.extend_from_slice(bytes);
            if self.ending.len() > 2 * MARKED {
                self.ending.drain(..self.ending.len() - MARKED);
            }
        }
        self.delivered.bytes += bytes.len() as u64;
        match parts.last_mut() {
            Some(Part::Bytes(before)) => before.extend_from_slice(bytes),
            _ => parts.push(Part::Bytes(bytes.to_vec())),
        }
        if bytes.ends_with(b"\n") {
            self.delivered.lines += 1;
            self.window.end(&open.mark);
            self.open = None;
            self.state = State::Start;
        }
    }
}
