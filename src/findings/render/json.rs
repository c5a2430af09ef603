//! Findings as JSON.

use serde::Serialize;

use crate::findings::{At, Difference, Finding, Report, Severity, Skipped};

#[derive(Serialize)]
struct Found<'a> {
    check: &'a str,
    severity: Severity,
    line: Option<usize>,
    column: Option<usize>,
    object: Option<&'a str>,
    message: &'a str,
    differences: &'a [Difference],
    command: Option<&'a str>,
}

impl<'a> From<&'a Finding> for Found<'a> {
    fn from(finding: &'a Finding) -> Found<'a> {
        let (place, object) = match &finding.at {
            At::Line(place) => (Some(place), None),
            At::Object(object) => (None, Some(object.as_str())),
        };
        Found {
            check: finding.check.name,
            severity: finding.severity(),
            line: place.map(|place| place.line),
            column: place.map(|place| place.column),
            object,
            message: &finding.message,
            differences: &finding.differences,
            command: finding.command.as_deref(),
        }
    }
}

/// What a program reads.
pub(in crate::findings) fn value(report: &Report<'_>) -> serde_json::Value {
    let counts: serde_json::Map<String, serde_json::Value> = report
        .counts
        .iter()
        .map(|(what, count)| ((*what).to_owned(), (*count).into()))
        .collect();
    let found: Vec<Found<'_>> = report.findings.iter().map(Found::from).collect();
    let skipped = |skipped: &Skipped| serde_json::json!({ "check": skipped.check.name, "reason": skipped.reason });
    let mut value = serde_json::json!({
        "version": 1,
        "file": report.file,
        "counts": counts,
        "checks": report.checks.iter().map(|check| check.name).collect::<Vec<_>>(),
        "skipped": report.skipped.iter().map(skipped).collect::<Vec<_>>(),
        "errors": report.of(Severity::Error),
        "warnings": report.of(Severity::Warning),
        "findings": found,
    });
    if let Some(members) = value.as_object_mut() {
        let details = report.details.iter();
        members.extend(details.map(|(name, value)| ((*name).to_owned(), value.clone())));
    }
    value
}
