//! Findings as JUnit's XML: one test for each check, as Jenkins' plugin reads it.

use std::fmt::Write as _;

use crate::findings::{Check, Finding, Report};

use super::{place, visible, whole};

fn in_xml(text: &str) -> String {
    visible(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn of_check<'a>(report: &'a Report<'_>, check: &'a Check) -> impl Iterator<Item = &'a Finding> {
    let findings = report.findings.iter();
    findings.filter(move |finding| finding.check.name == check.name)
}

pub(super) fn junit(report: &Report<'_>) -> String {
    let skipped: Vec<_> = report
        .skipped
        .iter()
        .filter(|skipped| !report.checks.contains(&skipped.check))
        .collect();
    let failures = report
        .checks
        .iter()
        .filter(|check| of_check(report, check).next().is_some());
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"registry\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n",
        report.checks.len() + skipped.len(),
        failures.count(),
        skipped.len()
    );
    for check in report.checks {
        let name = check.name;
        let mut found = of_check(report, check).peekable();
        let Some(first) = found.peek() else {
            let _infallible = writeln!(out, "  <testcase classname=\"registry\" name=\"{name}\"/>");
            continue;
        };
        let _infallible = writeln!(
            out,
            "  <testcase classname=\"registry\" name=\"{name}\">\n    <failure type=\"{}\" message=\"{}\">",
            first.severity(),
            in_xml(&first.message)
        );
        for finding in found {
            let sentence = format!("{}: {}", place(report, &finding.at), whole(finding));
            for line in sentence.lines() {
                let _infallible = writeln!(out, "{}", in_xml(line));
            }
        }
        out.push_str("    </failure>\n  </testcase>\n");
    }
    for skipped in skipped {
        let _infallible = writeln!(
            out,
            "  <testcase classname=\"registry\" name=\"{}\">\n    <skipped message=\"{}\"/>\n  </testcase>",
            skipped.check.name,
            in_xml(&skipped.reason)
        );
    }
    out.push_str("</testsuite>\n");
    out
}
