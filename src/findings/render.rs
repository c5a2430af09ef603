//! Findings for people and for programs.

pub(super) mod json;
mod junit;
mod text;

use std::fmt::Write as _;

use clap::ValueEnum;

use super::{At, Report};

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

/// Whether a text for people may have colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// It may: it goes to a terminal.
    On,
    /// It may not.
    Off,
}

impl Format {
    /// The report in this format, with a line ending at its end unless it is empty. Only a text has colours.
    pub fn write(self, report: &Report<'_>, colour: Colour) -> String {
        match self {
            Format::Text => text::text(report, colour),
            Format::Json => format!("{:#}\n", json::value(report)),
            Format::Junit => junit::junit(report),
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

/// Where a finding is, for a line of text.
fn place(report: &Report<'_>, at: &At) -> String {
    match at {
        At::Line(place) => format!("{}:{place}", visible(report.file)),
        At::Object(object) => visible(object),
    }
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
        let file = property(report.file);
        let (place, about) = match &finding.at {
            At::Line(place) => (
                format!("file={file},line={},col={}", place.line, place.column),
                String::new(),
            ),
            At::Object(object) => (format!("file={file}"), format!("{object}: ")),
        };
        let _infallible = writeln!(
            out,
            "::{} {place},title={}::{}",
            finding.severity(),
            property(finding.check.name),
            message(&format!("{about}{}", whole(finding)))
        );
    }
    out
}

/// A finding's sentence with what belongs to it, in lines.
fn whole(finding: &super::Finding) -> String {
    let mut lines = vec![finding.message.clone()];
    lines.extend(differences(finding));
    lines.extend(
        finding
            .command
            .iter()
            .map(|command| format!("run: {command}")),
    );
    lines.join("\n")
}

/// A finding's differences as a small diff, without colours.
fn differences(finding: &super::Finding) -> Vec<String> {
    let mut lines = Vec::new();
    for difference in &finding.differences {
        let sides = [("-", &difference.found), ("+", &difference.wanted)];
        for (sign, value) in sides {
            if let Some(value) = value {
                lines.push(format!("{sign} {}: {value}", difference.field));
            }
        }
    }
    lines
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
    let lines = |finding: &super::Finding| {
        let whole = whole(finding);
        let lines: Vec<String> = whole.lines().map(cell).collect();
        lines.join("<br>")
    };
    let mut out = format!(
        "{} in {} ({}, {} checks)\n",
        report.sums(),
        cell(report.file),
        report.extent(),
        report.checks.len()
    );
    if !report.findings.is_empty() {
        out.push_str("\n| place | severity | finding | check |\n|---|---|---|---|\n");
    }
    for finding in report.findings {
        let _infallible = writeln!(
            out,
            "| {} | {} | {} | {} |",
            cell(&finding.at.to_string()),
            finding.severity(),
            lines(finding),
            finding.check.name
        );
    }
    if !report.skipped.is_empty() {
        out.push_str("\nNot checked:\n\n");
    }
    for skipped in report.skipped {
        let _infallible = writeln!(out, "- {}: {}", skipped.check.name, cell(&skipped.reason));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::{Check, Difference, Finding, Group, Severity, Skipped};
    use crate::yaml::Place;

    const ORDER: Check = Check {
        name: "order",
        group: Group::File,
        severity: Severity::Warning,
        explanation: "",
    };
    const YAML: Check = Check {
        name: "yaml",
        severity: Severity::Error,
        ..ORDER
    };
    const APPLICATION: Check = Check {
        name: "application",
        group: Group::Applications,
        severity: Severity::Error,
        explanation: "",
    };

    fn shown(format: Format, colour: Colour) -> String {
        let mut differs = APPLICATION.finding(
            At::Object("the Application a/b\n".to_owned()),
            "differs".to_owned(),
        );
        differs.differences.push(Difference {
            field: "spec.project".to_owned(),
            wanted: Some("releases".to_owned()),
            found: None,
        });
        differs.command = Some("do <this>".to_owned());
        let findings: [Finding; 3] = [
            ORDER.finding(
                Place { line: 2, column: 3 },
                "a | b <c>: \u{1b}[31m 100%".to_owned(),
            ),
            YAML.finding(Place { line: 9, column: 1 }, "no".to_owned()),
            differs,
        ];
        let report = Report {
            file: "v,1.yaml",
            source: "apps:\n  b:\u{7} {}\n",
            findings: &findings,
            checks: &[&YAML, &ORDER, &APPLICATION],
            skipped: &[Skipped {
                check: &APPLICATION,
                reason: "no <cluster>".to_owned(),
            }],
            counts: &[("apps", 1), ("stages", 0)],
            details: &[],
        };
        format.write(&report, colour)
    }

    #[test]
    fn a_text_has_the_line_that_a_finding_is_about_and_no_control_character() {
        assert_eq!(
            shown(Format::Text, Colour::Off),
            "In the file:\n\
             v,1.yaml:2:3: warning: a | b <c>: \\u{1b}[31m 100% [order]\n     2 |   b:\\u{7} {}\n       |   ^\n\
             v,1.yaml:9:1: error: no [yaml]\n\
             In the live Applications:\n\
             the Application a/b\\u{a}: error: differs [application]\n       + spec.project: releases\n       = run: do <this>\n\
             Not checked:\n\
             application: no <cluster>\n"
        );
    }

    #[test]
    fn colours_are_all_that_a_terminal_gets_more() {
        let coloured = shown(Format::Text, Colour::On);
        assert!(coloured.contains("\u{1b}["), "{coloured}");
        assert_eq!(without_colours(&coloured), shown(Format::Text, Colour::Off));
        assert_eq!(
            shown(Format::Json, Colour::On),
            shown(Format::Json, Colour::Off)
        );
    }

    fn without_colours(text: &str) -> String {
        let mut parts = text.split("\u{1b}[");
        let mut plain = parts.next().unwrap().to_owned();
        for part in parts {
            plain.push_str(part.split_once('m').unwrap().1);
        }
        plain
    }

    #[test]
    fn each_format_keeps_what_its_reader_would_take_for_its_own() {
        let github = shown(Format::Github, Colour::Off);
        assert!(
            github.starts_with(
                "::warning file=v%2C1.yaml,line=2,col=3,title=order::a | b <c>: \u{1b}[31m 100%25\n"
            ),
            "{github}"
        );
        assert!(
            github.ends_with(
                "::error file=v%2C1.yaml,title=application::the Application a/b%0A: differs%0A+ spec.project: releases%0Arun: do <this>\n"
            ),
            "{github}"
        );
        let markdown = shown(Format::Markdown, Colour::Off);
        assert!(
            markdown.contains("| 2:3 | warning | a \\| b \\<c\\>: "),
            "{markdown}"
        );
        assert!(
            markdown.contains("| differs<br>\\+ spec.project: releases<br>run: do \\<this\\> |"),
            "{markdown}"
        );
        let junit = shown(Format::Junit, Colour::Off);
        assert!(
            junit.contains("tests=\"3\" failures=\"3\" skipped=\"0\""),
            "{junit}"
        );
        assert!(
            junit.contains("message=\"a | b &lt;c&gt;: \\u{1b}[31m 100%\""),
            "{junit}"
        );
        let json: serde_json::Value =
            serde_json::from_str(&shown(Format::Json, Colour::Off)).unwrap();
        assert_eq!(json["errors"], 2);
        assert_eq!(json["findings"][0]["line"], 2);
        assert_eq!(json["findings"][2]["line"], serde_json::Value::Null);
        assert_eq!(json["findings"][2]["object"], "the Application a/b\n");
        assert_eq!(json["findings"][2]["differences"][0]["wanted"], "releases");
        assert_eq!(json["skipped"][0]["reason"], "no <cluster>");
        assert_eq!(json["counts"]["apps"], 1);
    }
}
