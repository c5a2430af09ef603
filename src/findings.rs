//! What a check finds: a place, a sentence, and how much it weighs.

mod render;

use std::fmt;

use clap::ValueEnum;
use serde::Serialize;

use crate::yaml::Place;

pub use render::Format;

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// It works, and is likely not what was meant.
    Warning,
    /// It does not work, or works on something else than it says.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}

/// One thing that a check found in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The check's name.
    pub check: &'static str,
    /// How much it weighs.
    pub severity: Severity,
    /// Where it is.
    pub place: Place,
    /// What is wrong, and what would mend it.
    pub message: String,
}

/// What was found in one file, and what was looked at.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// The file, as people name it.
    pub file: &'a str,
    /// Its text.
    pub source: &'a str,
    /// What was found, in the order of the file.
    pub findings: &'a [Finding],
    /// The names of the checks that were run.
    pub checks: &'a [&'static str],
    /// How much was looked at: what it is, and how many there are.
    pub counts: [(&'static str, usize); 2],
}

impl Report<'_> {
    /// For programs: see `schemas/registry-check.v1.schema.json`.
    pub fn to_json(&self) -> serde_json::Value {
        render::value(self)
    }

    /// `<n> error(s), <n> warning(s)`.
    pub fn sums(&self) -> String {
        format!(
            "{} error(s), {} warning(s)",
            self.of(Severity::Error),
            self.of(Severity::Warning)
        )
    }

    /// How many findings weigh this much.
    pub fn of(&self, severity: Severity) -> usize {
        let of = self.findings.iter();
        of.filter(|finding| finding.severity == severity).count()
    }
}
