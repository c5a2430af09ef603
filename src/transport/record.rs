//! Machine data in a log: `presync-record: 1 <part>/<parts> <base64>` lines, whose parts joined are gzip of JSON.
//!
//! The container runtime splits log lines at 16 KiB (CRI), so a part stays well below that.

use std::io::{Read, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::names::{CommitSha, StateKey};
use crate::terraform::changes::Changes;
use crate::terraform::values::Values;

/// How every record line begins.
pub const PREFIX: &str = "presync-record: ";
/// The version of the line format.
const LINE_VERSION: &str = "1";
/// Characters of base64 in one line.
const PART: usize = 8 * 1024;
/// A record larger than this is not one of ours: decompression stops there.
const LARGEST: u64 = 256 * 1024 * 1024;

/// What a plan found, without any value that is sensitive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanRecord {
    /// The version of this shape: 1.
    pub version: u32,
    /// The commit that was planned.
    pub revision: CommitSha,
    /// The state that it was planned against.
    pub state: StateSeen,
    /// The program that planned, with its version: `Terraform 1.11.4`.
    pub terraform: String,
    /// What an apply would do.
    pub changes: Changes,
    /// What the attributes hold before and after, for a report.
    #[serde(default, skip_serializing_if = "Values::is_empty")]
    pub values: Values,
}

/// What a destroy did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DestroyRecord {
    /// The version of this shape: 1.
    pub version: u32,
    /// The commit that it worked from.
    pub revision: CommitSha,
    /// The state's path in the state repository.
    pub key: StateKey,
    /// What was confirmed.
    pub digest: String,
    /// How many objects this run destroyed.
    pub destroyed: usize,
    /// How many it forgot.
    pub forgotten: usize,
    /// The commit that removed the state; none where there was none any more.
    pub removed: Option<String>,
    /// What the attributes held of what this run took, for a report; it goes no further.
    #[serde(default, skip_serializing_if = "Values::is_empty")]
    pub values: Values,
}

/// The state as it was read, once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateSeen {
    /// Its path in the state repository.
    pub key: StateKey,
    /// Lineage and serial; `null` where there was no state.
    pub position: Option<StatePosition>,
}

/// Where in its life a state was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatePosition {
    /// Made with the state, kept for its life.
    pub lineage: String,
    /// Raised by every write.
    pub serial: u64,
}

/// A record that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A line is malformed, or a part is missing.
    #[error("the record in the log is incomplete: {0}")]
    Incomplete(String),
    /// The parts are there, but what they hold is not a record of this version.
    #[error("the record in the log is not one that this version reads")]
    Content(#[source] serde_json::Error),
    /// It could not be unpacked.
    #[error("the record in the log could not be unpacked")]
    Unpack(#[source] std::io::Error),
}

/// A record as the lines to print (without line ends), and its digest for the termination summary.
pub fn encode<T: Serialize>(record: &T) -> Result<(Vec<String>, String), RecordError> {
    let json = serde_json::to_vec(record).map_err(RecordError::Content)?;
    let text = packed(&json)?;
    let parts: Vec<&str> = (0..text.len())
        .step_by(PART)
        .filter_map(|start| text.get(start..(start + PART).min(text.len())))
        .collect();
    let count = parts.len();
    let lines = parts
        .iter()
        .enumerate()
        .map(|(i, part)| format!("{PREFIX}{LINE_VERSION} {}/{count} {part}", i + 1))
        .collect();
    Ok((lines, digest(&json)))
}

/// A value as one text that holds it, compressed.
pub fn pack<T: Serialize>(value: &T) -> Result<String, RecordError> {
    packed(&serde_json::to_vec(value).map_err(RecordError::Content)?)
}

fn packed(json: &[u8]) -> Result<String, RecordError> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(json).map_err(RecordError::Unpack)?;
    Ok(STANDARD.encode(packed.finish().map_err(RecordError::Unpack)?))
}

/// The value that [`pack`] has packed.
pub fn unpack<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, RecordError> {
    let packed = STANDARD.decode(text);
    let packed = packed.map_err(|error| RecordError::Incomplete(error.to_string()))?;
    serde_json::from_slice(&unzipped(&packed)?).map_err(RecordError::Content)
}

fn unzipped(packed: &[u8]) -> Result<Vec<u8>, RecordError> {
    let mut json = Vec::new();
    GzDecoder::new(packed)
        .take(LARGEST)
        .read_to_end(&mut json)
        .map_err(RecordError::Unpack)?;
    Ok(json)
}

/// The digest of a record's JSON: `sha256:` and the hash in hexadecimal.
pub fn digest(json: &[u8]) -> String {
    let hash = Sha256::digest(json);
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// Puts a record together from the lines of a log.
#[derive(Debug, Default)]
pub struct Collector {
    parts: Vec<String>,
    expected: usize,
    fault: Option<String>,
}

impl Collector {
    /// Takes one line after its [`PREFIX`].
    pub fn take(&mut self, line: &str) {
        if let Err(fault) = self.try_take(line) {
            self.fault.get_or_insert(fault);
        }
    }

    fn try_take(&mut self, line: &str) -> Result<(), String> {
        let malformed = || "one of its lines is malformed".to_owned();
        let mut words = line.split_ascii_whitespace();
        let (Some(LINE_VERSION), Some(numbers), Some(part), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(malformed());
        };
        let (number, count) = numbers.split_once('/').ok_or_else(malformed)?;
        let number: usize = number.parse().map_err(|_| malformed())?;
        self.expected = count.parse().map_err(|_| malformed())?;
        if number != self.parts.len() + 1 {
            return Err(format!("part {} is missing", self.parts.len() + 1));
        }
        self.parts.push(part.to_owned());
        Ok(())
    }

    /// The whole record with its digest; `None` when the log held none.
    pub fn finish<T: for<'de> Deserialize<'de>>(self) -> Result<Option<(T, String)>, RecordError> {
        if let Some(fault) = self.fault {
            return Err(RecordError::Incomplete(fault));
        }
        if self.parts.is_empty() {
            return Ok(None);
        }
        if self.parts.len() != self.expected {
            let missing = format!(
                "part {} of {} is missing",
                self.parts.len() + 1,
                self.expected
            );
            return Err(RecordError::Incomplete(missing));
        }
        let packed = STANDARD
            .decode(self.parts.concat())
            .map_err(|e| RecordError::Incomplete(e.to_string()))?;
        let json = unzipped(&packed)?;
        let record = serde_json::from_slice(&json).map_err(RecordError::Content)?;
        Ok(Some((record, digest(&json))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(lines: &[String]) -> Result<Option<(Vec<u64>, String)>, RecordError> {
        let mut collector = Collector::default();
        for line in lines {
            collector.take(line.strip_prefix("presync-record: ").unwrap());
        }
        collector.finish()
    }

    /// Numbers that gzip cannot make small, so that the record takes several lines.
    fn large() -> Vec<u64> {
        let mut x = 1_u64;
        std::iter::repeat_with(|| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            x
        })
        .take(4000)
        .collect()
    }

    #[test]
    fn a_record_of_many_lines_comes_back_whole_and_no_line_reaches_the_runtimes_limit() {
        let record = large();
        let (lines, digest) = encode(&record).unwrap();
        assert!(lines.len() > 3);
        assert!(lines.iter().all(|line| line.len() < 16 * 1024));
        assert_eq!(collect(&lines).unwrap(), Some((record, digest)));
    }

    #[test]
    fn a_missing_or_doubled_line_is_told_and_not_read_as_a_smaller_record() {
        let (lines, _) = encode(&large()).unwrap();
        for missing in 0..lines.len() {
            let mut cut = lines.clone();
            cut.remove(missing);
            assert!(
                matches!(collect(&cut), Err(RecordError::Incomplete(_))),
                "{missing}"
            );
        }
        let mut doubled = lines.clone();
        doubled.insert(0, lines[0].clone());
        assert!(collect(&doubled).is_err());
    }

    #[test]
    fn a_log_without_a_record_has_none() {
        assert_eq!(collect(&[]).unwrap(), None);
    }
}
