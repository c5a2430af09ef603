//! One file of a root, read, and what is left of it.

use std::ops::Range;

use crate::terraform::root::without_bom;

use super::Unread;
use super::structure::Source;

/// Where the lines of a file begin, and how the file is called in the clone.
#[derive(Debug)]
pub(super) struct Lines {
    shown: String,
    ends: Vec<usize>,
}

impl Lines {
    fn new(shown: String, text: &str) -> Lines {
        let ends = text.match_indices('\n').map(|(at, _)| at).collect();
        Lines { shown, ends }
    }

    /// File and line of a byte of the text.
    pub fn place(&self, at: usize) -> String {
        let line = self.ends.partition_point(|end| *end < at) + 1;
        format!("{}:{line}", self.shown)
    }
}

/// One file of a root, read.
#[derive(Debug)]
pub(super) struct File<'a> {
    pub name: String,
    pub source: Source<'a>,
    pub lines: Lines,
    has_bom: bool,
}

impl<'a> File<'a> {
    /// Reads a configuration file of the folder that stands at `shown` in the clone.
    pub fn read(name: &str, bytes: &'a [u8], shown: &str) -> Result<File<'a>, Unread> {
        let shown = format!("{shown}/{name}");
        if name.ends_with(".json") {
            return Err(Unread {
                place: format!("{shown}:1"),
                why: "Terraform's JSON syntax",
            });
        }
        let whole = std::str::from_utf8(bytes).map_err(|error| {
            let read = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            Unread {
                place: Lines::new(shown.clone(), &read).place(read.len()),
                why: "not UTF-8",
            }
        })?;
        let text = without_bom(whole);
        let lines = Lines::new(shown, text);
        match Source::read(text) {
            Ok(source) => Ok(File {
                name: name.to_owned(),
                source,
                lines,
                has_bom: text.len() < whole.len(),
            }),
            Err(unreadable) => Err(Unread {
                place: lines.place(unreadable.at),
                why: unreadable.why,
            }),
        }
    }

    /// Whether its declarations are merged into those of the other files.
    pub fn is_override(&self) -> bool {
        let base = self.name.rsplit_once('.').map_or("", |(base, _)| base);
        base == "override" || base.ends_with("_override")
    }

    /// The file without `dropped`, which are in order and do not overlap. Of what is dropped the ends of lines stay, so that
    /// Terraform's messages name the lines of the repository; all else is as it was.
    pub fn without(&self, dropped: &[Range<usize>]) -> String {
        let text = self.source.text;
        let mut left = String::with_capacity(text.len());
        if self.has_bom {
            left.push('\u{feff}');
        }
        let mut at = 0;
        for range in dropped {
            left.push_str(&text[at..range.start]);
            let gone = &text[range.clone()];
            for line in gone.split_inclusive('\n') {
                let begin = line.trim_end_matches(['\r', '\n']).len();
                let end = &line[begin..];
                left.push_str(if end.ends_with("\r\n") {
                    "\r\n"
                } else {
                    end.trim_start_matches('\r')
                });
            }
            at = range.end;
        }
        left.push_str(&text[at..]);
        left
    }
}
