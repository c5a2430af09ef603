//! Findings for people and for programs.

use std::fmt::Write as _;

use clap::ValueEnum;
use serde::Serialize;

use super::{Finding, Report, Severity};

/// How findings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people: each with the line that it is about
    Text,
    /// For programs: see schemas/registry-check.v1.schema.json
    Json,
    /// For Jenkins and others that show test results: one test for each check
    Junit,
    /// For GitHub Actions: annotations of the file
    Github,
    /// For a comment or a summary: a table
    Markdown,
}

impl Format {
    /// The report in this format, with a line ending at its end unless it is empty.
    pub fn write(self, report: &Report<'_>) -> String {
        match self {
            Format::Text => text(report),
            Format::Json => json(report),
            Format::Junit => junit(report),
            Format::Github => github(report),
            Format::Markdown => markdown(report),
        }
    }
}

/// A text in which no control character does anything.
fn visible(text: &str) -> String {
    let shown = |c: char| match c {
        '\t' => " ".to_owned(),
        c if c.is_control() => format!("{}", c.escape_unicode()),
        c => c.to_string(),
    };
    text.chars().map(shown).collect()
}

fn text(report: &Report<'_>) -> String {
    let mut out = String::new();
    let lines: Vec<&str> = report.source.lines().collect();
    for finding in report.findings {
        let place = finding.place;
        let _infallible = writeln!(
            out,
            "{}:{place}: {}: {} [{}]",
            visible(report.file),
            finding.severity,
            visible(&finding.message),
            finding.check
        );
        // An empty file has no line to show.
        if let Some(line) = lines.get(place.line - 1) {
            let _infallible = writeln!(
                out,
                "{:>6} | {}\n       | {}^",
                place.line,
                visible(line),
                " ".repeat(place.column - 1)
            );
        }
    }
    out
}

fn json(report: &Report<'_>) -> String {
    format!("{:#}\n", value(report))
}

/// What a program reads.
pub(super) fn value(report: &Report<'_>) -> serde_json::Value {
    #[derive(Serialize)]
    struct Found<'a> {
        check: &'a str,
        severity: Severity,
        line: usize,
        column: usize,
        message: &'a str,
    }
    let found = |finding: &Finding| {
        serde_json::to_value(Found {
            check: finding.check,
            severity: finding.severity,
            line: finding.place.line,
            column: finding.place.column,
            message: &finding.message,
        })
        .unwrap_or_default()
    };
    let counts: serde_json::Map<String, serde_json::Value> = report
        .counts
        .iter()
        .map(|(what, count)| ((*what).to_owned(), (*count).into()))
        .collect();
    serde_json::json!({
        "version": 1,
        "file": report.file,
        "counts": counts,
        "checks": report.checks,
        "errors": report.of(Severity::Error),
        "warnings": report.of(Severity::Warning),
        "findings": report.findings.iter().map(found).collect::<Vec<_>>(),
    })
}

fn in_xml(text: &str) -> String {
    visible(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn of_check<'a>(report: &'a Report<'_>, check: &'a str) -> impl Iterator<Item = &'a Finding> {
    let findings = report.findings.iter();
    findings.filter(move |finding| finding.check == check)
}

/// One test for each check that was run, as Jenkins' JUnit plugin reads it.
fn junit(report: &Report<'_>) -> String {
    let failures = report
        .checks
        .iter()
        .filter(|check| of_check(report, check).next().is_some());
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"registry\" tests=\"{}\" failures=\"{}\">\n",
        report.checks.len(),
        failures.count()
    );
    for check in report.checks {
        let mut found = of_check(report, check).peekable();
        let Some(first) = found.peek() else {
            let _infallible =
                writeln!(out, "  <testcase classname=\"registry\" name=\"{check}\"/>");
            continue;
        };
        let _infallible = writeln!(
            out,
            "  <testcase classname=\"registry\" name=\"{check}\">\n    <failure type=\"{}\" message=\"{}\">",
            first.severity,
            in_xml(&first.message)
        );
        for finding in found {
            let _infallible = writeln!(
                out,
                "{}:{}: {}",
                in_xml(report.file),
                finding.place,
                in_xml(&finding.message)
            );
        }
        out.push_str("    </failure>\n  </testcase>\n");
    }
    out.push_str("</testsuite>\n");
    out
}

/// Workflow commands
/// (<https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands#setting-a-warning-message>).
fn github(report: &Report<'_>) -> String {
    let message = |text: &str| {
        text.replace('%', "%25")
            .replace('\r', "%0D")
            .replace('\n', "%0A")
    };
    let property = |text: &str| message(text).replace(':', "%3A").replace(',', "%2C");
    let mut out = String::new();
    for finding in report.findings {
        let _infallible = writeln!(
            out,
            "::{} file={},line={},col={},title={}::{}",
            finding.severity,
            property(report.file),
            finding.place.line,
            finding.place.column,
            property(finding.check),
            message(&finding.message)
        );
    }
    out
}

fn markdown(report: &Report<'_>) -> String {
    let cell = |text: &str| {
        let mut out = String::new();
        for c in visible(text).chars() {
            if c.is_ascii_punctuation()
                && !matches!(c, '.' | ',' | ';' | ':' | '/' | '\'' | '"' | '(' | ')')
            {
                out.push('\\');
            }
            out.push(c);
        }
        out
    };
    let counts: Vec<String> = report
        .counts
        .iter()
        .map(|(what, count)| format!("{count} {what}"))
        .collect();
    let mut out = format!(
        "{} in {} ({}, {} checks)\n",
        report.sums(),
        cell(report.file),
        counts.join(", "),
        report.checks.len()
    );
    if !report.findings.is_empty() {
        out.push_str("\n| place | severity | finding | check |\n|---|---|---|---|\n");
    }
    for finding in report.findings {
        let _infallible = writeln!(
            out,
            "| {} | {} | {} | {} |",
            finding.place,
            finding.severity,
            cell(&finding.message),
            finding.check
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::Place;

    fn shown(format: Format) -> String {
        let findings = [
            Finding {
                check: "order",
                severity: Severity::Warning,
                place: Place { line: 2, column: 3 },
                message: "a | b <c>: \u{1b}[31m 100%".to_owned(),
            },
            Finding {
                check: "yaml",
                severity: Severity::Error,
                place: Place { line: 9, column: 1 },
                message: "no".to_owned(),
            },
        ];
        format.write(&Report {
            file: "v,1.yaml",
            source: "apps:\n  b:\u{7} {}\n",
            findings: &findings,
            checks: &["yaml", "order", "shape"],
            counts: [("apps", 1), ("stages", 0)],
        })
    }

    #[test]
    fn a_text_has_the_line_that_a_finding_is_about_and_no_control_character() {
        assert_eq!(
            shown(Format::Text),
            "v,1.yaml:2:3: warning: a | b <c>: \\u{1b}[31m 100% [order]\n     2 |   b:\\u{7} {}\n       |   ^\nv,1.yaml:9:1: error: no [yaml]\n"
        );
    }

    #[test]
    fn each_format_keeps_what_its_reader_would_take_for_its_own() {
        let github = shown(Format::Github);
        assert!(
            github.starts_with(
                "::warning file=v%2C1.yaml,line=2,col=3,title=order::a | b <c>: \u{1b}[31m 100%25\n"
            ),
            "{github}"
        );
        let markdown = shown(Format::Markdown);
        assert!(
            markdown.contains("| 2:3 | warning | a \\| b \\<c\\>: "),
            "{markdown}"
        );
        let junit = shown(Format::Junit);
        assert!(junit.contains("tests=\"3\" failures=\"2\""), "{junit}");
        assert!(junit.contains("name=\"shape\"/>"), "{junit}");
        assert!(
            junit.contains("message=\"a | b &lt;c&gt;: \\u{1b}[31m 100%\""),
            "{junit}"
        );
        let json: serde_json::Value = serde_json::from_str(&shown(Format::Json)).unwrap();
        assert_eq!(json["errors"], 1);
        assert_eq!(json["findings"][0]["line"], 2);
        assert_eq!(json["counts"]["apps"], 1);
    }
}
