//! What a check finds: where, a sentence, and how much it weighs.

mod render;

use std::fmt;

use clap::ValueEnum;
use serde::Serialize;

use crate::yaml::Place;

pub use render::{Colour, Format};

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

/// What a check looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// A file, and nothing else.
    File,
    /// The repositories that the file names.
    Repositories,
    /// What is live in a cluster.
    Applications,
    /// What is kept although nothing deploys it.
    Leftovers,
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Group::File => "the file",
            Group::Repositories => "the repositories",
            Group::Applications => "the live Applications",
            Group::Leftovers => "what was left behind",
        })
    }
}

/// A check: what it is called, what it looks at, how much its findings weigh, and what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// What it looks at.
    pub group: Group,
    /// How much its findings weigh.
    pub severity: Severity,
    /// What it is about, and why, for people.
    pub explanation: &'static str,
}

impl Check {
    /// A finding of this check.
    pub fn finding(&'static self, at: impl Into<At>, message: String) -> Finding {
        Finding {
            check: self,
            at: at.into(),
            message,
            differences: Vec::new(),
            command: None,
        }
    }
}

/// Where a finding is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum At {
    /// At a place of the file.
    Line(Place),
    /// At something that the file does not have, as people name it: `the Application argocd/shop-dev`.
    Object(String),
}

impl From<Place> for At {
    fn from(place: Place) -> At {
        At::Line(place)
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Line(place) => place.fmt(f),
            At::Object(object) => f.write_str(object),
        }
    }
}

/// A field that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The field, such as `spec.source.targetRevision`.
    pub field: String,
    /// What it should hold; nothing where it should not be there.
    pub wanted: Option<String>,
    /// What it holds; nothing where it is not there.
    pub found: Option<String>,
}

/// One thing that a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The check.
    pub check: &'static Check,
    /// Where it is.
    pub at: At,
    /// What is wrong, and what would mend it.
    pub message: String,
    /// The fields that are not as they should be, where that is what is wrong.
    pub differences: Vec<Difference>,
    /// The command that mends it, as it is typed.
    pub command: Option<String>,
}

impl Finding {
    /// How much it weighs.
    pub fn severity(&self) -> Severity {
        self.check.severity
    }
}

/// A check that was not run, or not on everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The check.
    pub check: &'static Check,
    /// Why, and what would have it run.
    pub reason: String,
}

/// What was found, and what was looked at.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// The file, as people name it.
    pub file: &'a str,
    /// Its text.
    pub source: &'a str,
    /// What was found, in the order of the file, and behind that what is not in the file.
    pub findings: &'a [Finding],
    /// The checks that were run.
    pub checks: &'a [&'static Check],
    /// Those that were not, or not on everything.
    pub skipped: &'a [Skipped],
    /// How much was looked at: what it is, and how many there are.
    pub counts: &'a [(&'static str, usize)],
    /// More for programs, each with its name.
    pub details: &'a [(&'static str, serde_json::Value)],
}

impl Report<'_> {
    /// For programs: see `schemas/registry-check.v1.schema.json`.
    pub fn to_json(&self) -> serde_json::Value {
        render::json::value(self)
    }

    /// How much was looked at: `1 app, 2 stages`.
    pub fn extent(&self) -> String {
        let counted = |(what, count): &(&str, usize)| match (*count, what.strip_suffix("ies")) {
            (1, Some(stem)) => format!("1 {stem}y"),
            (1, None) => format!("1 {}", what.strip_suffix('s').unwrap_or(what)),
            _ => format!("{count} {what}"),
        };
        let counts: Vec<String> = self.counts.iter().map(counted).collect();
        counts.join(", ")
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
        of.filter(|finding| finding.severity() == severity).count()
    }
}
