//! Findings for people, as a compiler shows its own.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use crate::findings::{At, Finding, Group, Report, Severity};

use super::{Colour, differences, place, visible};

const BOLD: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();
const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const FOUND: Style = AnsiColor::Red.on_default();
const WANTED: Style = AnsiColor::Green.on_default();

/// Writes with colours, or without.
struct Painter(Colour);

impl Painter {
    fn paint(&self, style: Style, text: &str) -> String {
        match self.0 {
            Colour::On => format!("{style}{text}{style:#}"),
            Colour::Off => text.to_owned(),
        }
    }
}

/// The findings by what was looked at; a heading stands above each of these where there are several.
pub(super) fn text(report: &Report<'_>, colour: Colour) -> String {
    let painter = Painter(colour);
    let mut out = String::new();
    let lines: Vec<&str> = report.source.lines().collect();
    let mut groups: Vec<Group> = report.checks.iter().map(|check| check.group).collect();
    groups.dedup();
    for group in &groups {
        let mut of_group = report
            .findings
            .iter()
            .filter(|finding| finding.check.group == *group)
            .peekable();
        if groups.len() > 1 && of_group.peek().is_some() {
            let _infallible = writeln!(out, "{}", painter.paint(BOLD, &format!("In {group}:")));
        }
        for found in of_group {
            finding(&mut out, report, &lines, found, &painter);
        }
    }
    if !report.skipped.is_empty() {
        let _infallible = writeln!(out, "{}", painter.paint(BOLD, "Not checked:"));
    }
    for skipped in report.skipped {
        let _infallible = writeln!(out, "{}: {}", skipped.check.name, visible(&skipped.reason));
    }
    out
}

fn finding(
    out: &mut String,
    report: &Report<'_>,
    lines: &[&str],
    finding: &Finding,
    painter: &Painter,
) {
    let severity = finding.severity();
    let style = match severity {
        Severity::Error => ERROR,
        Severity::Warning => WARNING,
    };
    let _infallible = writeln!(
        out,
        "{}: {}: {} {}",
        painter.paint(BOLD, &place(report, &finding.at)),
        painter.paint(style, &severity.to_string()),
        visible(&finding.message),
        painter.paint(FAINT, &format!("[{}]", finding.check.name)),
    );
    if let At::Line(place) = &finding.at {
        // An empty file has no line to show.
        if let Some(line) = lines.get(place.line - 1) {
            let _infallible = writeln!(
                out,
                "{} {}\n{} {}{}",
                painter.paint(FAINT, &format!("{:>6} |", place.line)),
                visible(line),
                painter.paint(FAINT, "       |"),
                " ".repeat(place.column - 1),
                painter.paint(style, "^"),
            );
        }
    }
    for line in differences(finding) {
        let style = match line.starts_with('-') {
            true => FOUND,
            false => WANTED,
        };
        let _infallible = writeln!(out, "       {}", painter.paint(style, &visible(&line)));
    }
    if let Some(command) = &finding.command {
        let _infallible = writeln!(out, "       = run: {}", visible(command));
    }
}
