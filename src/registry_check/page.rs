//! The report of a check, for people.

use crate::findings::{Finding, Severity};
use crate::page::{self, Body, Page, Part, Tone, Verdict};
use crate::report::Failure;

use super::{CheckReport, PROGRAM};

impl CheckReport {
    /// The report for people.
    pub fn page(&self) -> Page {
        let looked = self.looked.as_ref();
        let findings = looked.iter().flat_map(|looked| &looked.part.findings);
        let worst = findings.clone().map(Finding::severity).max();
        let (tone, word) = match (&self.failure, worst) {
            (Some(_), _) => (Tone::Grave, self.outcome.word()),
            (None, Some(Severity::Error)) => (Tone::Grave, "Errors"),
            (None, Some(Severity::Warning)) => (Tone::Notice, "Warnings"),
            (None, None) => (Tone::Calm, "Nothing found"),
        };
        let rows: Vec<Vec<String>> = findings
            .map(|finding| {
                vec![
                    finding.at.to_string(),
                    finding.severity().to_string(),
                    sentence(finding),
                    finding.check.name.to_owned(),
                ]
            })
            .collect();
        let head = ["Place", "Severity", "Finding", "Check"].map(str::to_owned);
        let found = Part {
            heading: "Findings".to_owned(),
            tone,
            body: Body::Table {
                head: head.to_vec(),
                rows,
            },
        };
        let ran = looked.iter().flat_map(|looked| &looked.part.checks);
        let ran = ran.map(|check| vec![check.name.to_owned(), check.explanation.to_owned()]);
        let checks = Part {
            heading: "What was looked at".to_owned(),
            tone: Tone::Calm,
            body: Body::Table {
                head: ["Check", "What it is about"].map(str::to_owned).to_vec(),
                rows: ran.collect(),
            },
        };
        let name = looked.map_or("the registry", |looked| &looked.name);
        let skipped: Vec<Vec<String>> = looked
            .iter()
            .flat_map(|looked| &looked.part.skipped)
            .map(|skipped| vec![skipped.check.name.to_owned(), skipped.reason.clone()])
            .collect();
        let skipped = (!skipped.is_empty()).then(|| Part {
            heading: "What was not looked at".to_owned(),
            tone: Tone::Notice,
            body: Body::Table {
                head: ["Check", "Why"].map(str::to_owned).to_vec(),
                rows: skipped,
            },
        });
        Page {
            kind: "Check of a registry".to_owned(),
            target: name.to_owned(),
            verdict: Verdict {
                tone,
                word: word.to_owned(),
                error: self.failure.as_ref().map(Failure::message),
                last_line: self.last_line(),
            },
            warnings: Vec::new(),
            facts: Vec::new(),
            parts: worst
                .map(|_| found)
                .into_iter()
                .chain(skipped)
                .chain([checks])
                .collect(),
            made: page::made(PROGRAM, jiff::Timestamp::now()),
        }
    }
}

/// A finding's sentence with what belongs to it.
fn sentence(finding: &Finding) -> String {
    let mut parts = vec![finding.message.clone()];
    parts.extend(finding.differences.iter().map(|difference| {
        let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
        format!(
            "{}: {} instead of {}",
            difference.field,
            side(&difference.found),
            side(&difference.wanted)
        )
    }));
    parts.extend(
        finding
            .command
            .iter()
            .map(|command| format!("Run: {command}")),
    );
    parts.join("; ")
}
