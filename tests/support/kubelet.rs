//! A container's log as the runtime writes it and the kubelet serves it: CRI records with a time each, long lines split,
//! times before lines, a filter by whole seconds, and files that are rotated away.

use std::ops::Range;

/// Where containerd splits a line.
pub const SPLIT: usize = 16 * 1024;

#[derive(Clone, Debug)]
pub struct Record {
    /// Nanoseconds since 1970.
    pub time: i64,
    /// With the end of its line, unless the line goes on in another record.
    pub content: Vec<u8>,
}

/// The records of lines with these times; each further record of a line comes `apart` nanoseconds later.
pub fn records(lines: &[(i64, Vec<u8>)], apart: i64) -> Vec<Record> {
    let mut records = Vec::new();
    for (time, line) in lines {
        let mut time = *time;
        let mut rest = line.as_slice();
        let text = |line: &[u8]| line.len() - usize::from(line.ends_with(b"\n"));
        while text(rest) > SPLIT {
            let (piece, after) = rest.split_at(SPLIT);
            records.push(Record {
                time,
                content: piece.to_vec(),
            });
            rest = after;
            time += apart;
        }
        if !rest.is_empty() {
            records.push(Record {
                time,
                content: rest.to_vec(),
            });
        }
    }
    records
}

/// What the container wrote.
pub fn text(records: &[Record]) -> Vec<u8> {
    records.iter().flat_map(|r| r.content.clone()).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A time before each line.
    New,
    /// A time before each record, within lines too.
    Old,
}

/// A stream: its bytes, and the record that each piece of them is of.
#[derive(Debug, Default)]
pub struct Served {
    pub bytes: Vec<u8>,
    pub of: Vec<(usize, Range<usize>)>,
    /// Records of the file that the filter left out.
    pub left_out: Vec<usize>,
}

/// Serves the records of the file that begins with the record `from`.
pub fn serve(records: &[Record], from: usize, since: Option<i64>, style: Style) -> Served {
    let mut served = Served::default();
    let mut new_line = true;
    for (number, record) in records.iter().enumerate().skip(from) {
        if since.is_some_and(|since| record.time < since * 1_000_000_000) {
            served.left_out.push(number);
        } else {
            let start = served.bytes.len();
            if new_line || style == Style::Old {
                served.bytes.extend(stamp(record.time).into_bytes());
            }
            served.bytes.extend(&record.content);
            served.of.push((number, start..served.bytes.len()));
        }
        new_line = record.content.ends_with(b"\n");
    }
    served
}

pub fn stamp(time: i64) -> String {
    let (second, rest) = (
        time.div_euclid(1_000_000_000),
        time.rem_euclid(1_000_000_000),
    );
    let days = second.div_euclid(86_400);
    let of_day = second.rem_euclid(86_400);
    // All times are of the days from 2026-01-01 on.
    let day = days - 20_454 + 1;
    assert!((1..=28).contains(&day), "{time}");
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("2026-01-{day:02}T{hour:02}:{minute:02}:{second:02}.{rest:09}Z ")
}

/// 2026-01-01.
pub const EPOCH: i64 = 20_454 * 86_400 * 1_000_000_000;
