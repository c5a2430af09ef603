//! What everybody did, in one file: each line is appended by one write, so that their order is that of the events, and a
//! KILL takes nothing back.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

/// An event's name, then what it is about; none holds a blank.
pub type Line = Vec<String>;

pub struct Ledger(File);

impl Ledger {
    pub fn open(path: &Path) -> Ledger {
        let mut options = OpenOptions::new();
        Ledger(options.create(true).append(true).open(path).unwrap())
    }

    pub fn note(&mut self, words: &[&str]) {
        // Begun on a line of its own, behind one that a KILL cut off, and ended by a mark that such a one lacks.
        let line = format!("\n{} .", words.join(" "));
        self.0.write_all(line.as_bytes()).unwrap();
    }
}

/// Every whole line.
pub fn read(path: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(path).unwrap();
    let whole = text.lines().filter_map(|line| line.strip_suffix(" ."));
    whole
        .map(|line| line.split(' ').map(str::to_owned).collect())
        .collect()
}

/// How many lines tell of this event.
pub fn count(lines: &[Line], event: &str) -> usize {
    lines.iter().filter(|line| line[0] == event).count()
}
