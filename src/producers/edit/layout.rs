//! The lines of the file, and which of them are whose entry.

use crate::producers::{Producer, Producers};
use crate::yaml::{self, Place};

use super::EditError;

/// A line with its ending.
pub(super) type Line = String;

/// A text, line by line, with its entries.
pub(super) struct Layout {
    file: String,
    lines: Vec<Line>,
    /// The columns before the dash.
    dash: usize,
    items: Vec<Item>,
    /// How most lines end.
    ending: &'static str,
}

/// The lines of one entry, from the first to the last, and the columns before its keys.
#[derive(Clone, Copy)]
struct Item {
    first: usize,
    last: usize,
    keys: usize,
}

impl Layout {
    pub(super) fn of(text: &str, file: &str, producers: &Producers) -> Result<Layout, EditError> {
        let lines: Vec<Line> = text.split_inclusive('\n').map(str::to_owned).collect();
        let crlf = lines.iter().filter(|line| line.ends_with("\r\n")).count();
        let mut layout = Layout {
            file: file.to_owned(),
            dash: 0,
            ending: if crlf * 2 > lines.len() { "\r\n" } else { "\n" },
            items: Vec::new(),
            lines,
        };
        // The parser has the list begin at its first dash, or behind it where the dash stands as far left as the key.
        let from = (0..producers.list.line)
            .rev()
            .find(|at| layout.lines[*at].trim_start().starts_with('-'))
            .unwrap_or_default();
        layout.dash = layout.indent(from).unwrap_or_default();
        let firsts: Vec<usize> = (from..layout.lines.len())
            .filter(|at| layout.has_dash(*at))
            .collect();
        if firsts.len() != producers.entries.len() || firsts.first() != Some(&from) {
            return Err(layout.form(producers.list, "the list is not written line by line"));
        }
        for (number, (first, entry)) in firsts.iter().zip(&producers.entries).enumerate() {
            let end = firsts.get(number + 1).copied();
            let end = end.unwrap_or(layout.lines.len());
            let deeper = |at: &usize| {
                layout
                    .indent(*at)
                    .is_some_and(|indent| indent > layout.dash)
            };
            let last = (*first + 1..end).rev().find(deeper).unwrap_or(*first);
            if !(first + 1..last + 2).contains(&entry.place.line)
                || entry.place.column < layout.dash + 2
            {
                let what = "the entry is not written below its dash";
                return Err(layout.form(entry.place, what));
            }
            layout.items.push(Item {
                first: *first,
                last,
                keys: entry.place.column - 1,
            });
        }
        Ok(layout)
    }

    fn form(&self, place: Place, what: &str) -> EditError {
        EditError::Form {
            file: self.file.clone(),
            place,
            what: what.to_owned(),
        }
    }

    /// How many columns are before what stands on a line; `None` for a blank one.
    fn indent(&self, at: usize) -> Option<usize> {
        let line = self.lines.get(at)?;
        let stripped = line.trim_start_matches(' ');
        (!stripped.trim().is_empty()).then(|| line.len() - stripped.len())
    }

    fn has_dash(&self, at: usize) -> bool {
        let line = self.lines.get(at).map_or("", String::as_str);
        let behind = line
            .get(self.dash..)
            .and_then(|rest| rest.strip_prefix('-'));
        self.indent(at) == Some(self.dash)
            && behind
                .is_some_and(|rest| rest.starts_with([' ', '\t', '\r', '\n']) || rest.is_empty())
    }

    /// The last entry before the next comment between entries.
    pub(super) fn end_of_section(&self, at: usize) -> usize {
        let begins_section = |this: &Item, next: &Item| {
            (this.last + 1..next.first).any(|line| self.indent(line).is_some())
        };
        let pairs = self.items.iter().zip(self.items.iter().skip(1)).enumerate();
        let boundary = pairs
            .skip(at)
            .find(|(_, (this, next))| begins_section(this, next));
        boundary.map_or(self.items.len() - 1, |(number, _)| number)
    }

    /// The lines of a new entry, in the form of the one at `like`.
    pub(super) fn entry(&self, like: usize, producer: &Producer) -> Vec<Line> {
        let keys = self.items[like].keys;
        let mut values = vec![("id", producer.id.to_string())];
        values.extend(
            producer
                .repo
                .as_ref()
                .map(|repo| ("repo", repo.to_string())),
        );
        values.push(("jenkinsJob", producer.job.to_string()));
        values.extend(
            producer
                .path
                .as_ref()
                .map(|path| ("path", path.to_string())),
        );
        let mut lines = Vec::new();
        for (key, value) in values {
            let mut before = " ".repeat(keys);
            if lines.is_empty() {
                before.replace_range(self.dash..=self.dash, "-");
            }
            lines.push(format!("{before}{key}: {}{}", scalar(&value), self.ending));
        }
        lines
    }

    /// The text with these lines behind the entry at `at`.
    pub(super) fn with_behind(mut self, at: usize, new: &[Line]) -> String {
        let behind = self.items[at].last + 1;
        let mut new = new.to_vec();
        // A file without a last line ending has none afterwards either.
        if behind == self.lines.len()
            && let Some(last) = self.lines.last_mut()
            && !last.ends_with('\n')
        {
            last.push_str(self.ending);
            if let Some(last) = new.last_mut() {
                last.truncate(last.trim_end().len());
            }
        }
        self.lines.splice(behind..behind, new);
        self.lines.concat()
    }

    /// The text without the entry at `at`.
    pub(super) fn without(mut self, at: usize) -> String {
        let Item { first, last, .. } = self.items[at];
        self.lines.drain(first..=last);
        self.lines.concat()
    }

    pub(super) fn text(&self) -> String {
        self.lines.concat()
    }

    /// Puts another value in the place of the one that stands there, on one line.
    pub(super) fn set(&mut self, at: usize, place: Place, value: &str) -> Result<(), EditError> {
        let range = self.token(at, place)?;
        if let Some(line) = self.lines.get_mut(place.line - 1) {
            line.replace_range(range, &scalar(value));
        }
        Ok(())
    }

    /// Takes a key away, with its line and what stands beside it there.
    pub(super) fn drop_key(&mut self, at: usize, key: &str, place: Place) -> Result<(), EditError> {
        self.token(at, place)?;
        let line = place.line - 1;
        let Item { first, keys, .. } = self.items[at];
        let stands_alone = line != first
            && self.indent(line) == Some(keys)
            && self.lines[line][keys..].starts_with(key);
        if !stands_alone {
            let what = format!("{key:?} does not stand on a line of its own behind the dash's");
            return Err(self.form(place, &what));
        }
        self.lines.remove(line);
        self.items[at].last -= 1;
        Ok(())
    }

    /// Adds a key behind all others.
    pub(super) fn add_key(&mut self, at: usize, key: &str, value: &str) -> Result<(), EditError> {
        let Item { last, keys, .. } = self.items[at];
        let line = format!(
            "{}{key}: {}{}",
            " ".repeat(keys),
            scalar(value),
            self.ending
        );
        if let Some(before) = self.lines.get_mut(last)
            && !before.ends_with('\n')
        {
            before.push_str(self.ending);
        }
        self.lines.insert(last + 1, line);
        self.items[at].last += 1;
        Ok(())
    }

    /// The bytes of the value at a place: one scalar of this entry, whole on its line.
    fn token(&self, at: usize, place: Place) -> Result<std::ops::Range<usize>, EditError> {
        let Item { first, last, .. } = self.items[at];
        let elsewhere = || {
            self.form(
                place,
                "the value comes from elsewhere by an alias or a merge",
            )
        };
        let line = place.line - 1;
        if !(first..=last).contains(&line) {
            return Err(elsewhere());
        }
        let text = self.lines[line].trim_end_matches(['\r', '\n']);
        let start = text.char_indices().nth(place.column - 1);
        let start = start.map(|(start, _)| start).ok_or_else(elsewhere)?;
        let rest = &text[start..];
        let length = match rest.chars().next() {
            Some(quote @ ('"' | '\'')) => quoted(rest, quote),
            Some('|' | '>' | '&' | '*' | '!') | None => None,
            Some(_) => Some(
                rest.find(" #")
                    .map_or(rest, |end| &rest[..end])
                    .trim_end()
                    .len(),
            ),
        };
        let several = || {
            self.form(
                place,
                "the value is not a single word or quoted text on its line",
            )
        };
        let length = length.ok_or_else(several)?;
        let is_last = |line: usize| {
            line == last
                || self
                    .indent(line + 1)
                    .is_none_or(|indent| indent <= self.items[at].keys)
        };
        // A longer indented line behind it goes on with it.
        if is_last(line) && yaml::parse(&rest[..length]).is_ok() {
            Ok(start..start + length)
        } else {
            Err(several())
        }
    }
}

/// The length of a quoted text, quotes included.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' if quote == '"' => {
                chars.next();
            }
            _ if char == quote
                && quote == '\''
                && chars.peek().is_some_and(|(_, c)| *c == '\'') =>
            {
                chars.next();
            }
            _ if char == quote => return Some(at + quote.len_utf8()),
            _ => {}
        }
    }
    None
}

/// A text as a scalar: plain where every parser reads it as that text, else in single quotes.
fn scalar(text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '.' | '_' | '/' | '-');
    let plain = text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(is_word)
        && yaml::parse(text).is_ok_and(|node| node.text() == Ok(text));
    if plain {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}
