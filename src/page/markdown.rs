//! The same page as Markdown, as GitHub and GitLab show it.

use crate::terraform::values::{Attribute, Shown, Side, ValuesOf};

use super::escape::{as_code, in_markdown};
use super::{Body, Fact, Item, Page, Part, Tone, Verdict, beside, sign_of, without_values};

/// The page.
pub fn markdown(page: &Page) -> String {
    let mut blocks = vec![format!(
        "# {}: {}",
        in_markdown(&page.kind),
        as_code(&page.target)
    )];
    verdict(&page.verdict, &mut blocks);
    if !page.facts.is_empty() {
        blocks.push("## What it is about".to_owned());
        let head = ["Name", "Value"].map(str::to_owned);
        let rows = page.facts.iter().map(|Fact { name, lines }| {
            let lines: Vec<String> = lines.iter().map(|line| in_markdown(line)).collect();
            vec![in_markdown(name), lines.join("<br>")]
        });
        blocks.push(table(&head, rows));
    }
    if !page.warnings.is_empty() {
        blocks.push("## Warnings".to_owned());
        blocks.push(list(&page.warnings));
    }
    for part in &page.parts {
        self::part(part, &mut blocks);
    }
    blocks.push("---".to_owned());
    blocks.push(in_markdown(&page.made));
    let mut text = blocks.join("\n\n");
    text.push('\n');
    text
}

fn verdict(verdict: &Verdict, blocks: &mut Vec<String>) {
    let Verdict {
        tone,
        word,
        error,
        last_line,
    } = verdict;
    let sign = match tone {
        Tone::Calm => "NOTE",
        Tone::Notice => "IMPORTANT",
        Tone::Grave => "CAUTION",
    };
    let mut lines = vec![
        format!("> [!{sign}]"),
        format!("> **{}**", in_markdown(word)),
    ];
    for text in error.iter().chain([last_line]) {
        lines.push(">".to_owned());
        lines.push(format!("> {}", in_markdown(text)));
    }
    blocks.push(lines.join("\n"));
}

fn part(part: &Part, blocks: &mut Vec<String>) {
    blocks.push(format!("## {}", in_markdown(&part.heading)));
    match &part.body {
        Body::Lines(lines) => blocks.push(list(lines)),
        Body::Table { head, rows } => {
            let rows = rows.iter();
            let rows = rows.map(|row| row.iter().map(|cell| in_markdown(cell)).collect());
            blocks.push(table(head, rows));
        }
        Body::Changes { changes, left_out } => {
            for item in changes {
                change(item, blocks);
            }
            blocks.extend(without_values(*left_out));
        }
    }
}

fn list(lines: &[String]) -> String {
    let lines: Vec<String> = lines
        .iter()
        .map(|line| format!("- {}", in_markdown(line)))
        .collect();
    lines.join("\n")
}

/// A table of cells that are escaped already.
fn table(head: &[String], rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
    let head: Vec<String> = head.iter().map(|name| in_markdown(name)).collect();
    let mut lines = vec![line(&head), format!("|{}", " --- |".repeat(head.len()))];
    lines.extend(rows.map(|row| line(&row)));
    lines.join("\n")
}

fn change(item: &Item, blocks: &mut Vec<String>) {
    let mut title = format!(
        "### {} {}: {}",
        in_markdown(sign_of(item.action)),
        as_code(&item.address),
        in_markdown(&item.words)
    );
    if let Some(data) = &item.data {
        title.push_str(&format!(", **holds data: {}**", in_markdown(data)));
    }
    blocks.push(title);
    blocks.extend((!item.notes.is_empty()).then(|| list(&item.notes)));
    let Some(values) = &item.values else {
        return;
    };
    if !values.attributes.is_empty() {
        blocks.push("<details><summary>before and after</summary>".to_owned());
        blocks.push(self::values(values));
        blocks.push("</details>".to_owned());
    }
    blocks.extend(beside(values));
}

fn values(values: &ValuesOf) -> String {
    let attributes = &values.attributes;
    let had = attributes.iter().any(|a| a.before != Side::Absent);
    let has = attributes.iter().any(|a| a.after != Side::Absent);
    let mut head = vec!["Attribute".to_owned()];
    head.extend(had.then(|| "Before".to_owned()));
    head.extend(has.then(|| "After".to_owned()));
    let rows = attributes.iter().map(|attribute| {
        let Attribute {
            path,
            before,
            after,
            replaces,
        } = attribute;
        let mut name = match path.as_str() {
            "" => "the value".to_owned(),
            path => as_code(path),
        };
        if *replaces {
            name.push_str(" *forces replacement*");
        }
        let mut row = vec![name];
        row.extend(had.then(|| side(before)));
        row.extend(has.then(|| side(after)));
        row
    });
    table(&head, rows)
}

/// One side, a line of it below the other.
fn side(side: &Side) -> String {
    let (Shown { text, cut }, quote) = match side {
        Side::Absent => return "*not set*".to_owned(),
        Side::Hidden => return "*sensitive: hidden*".to_owned(),
        Side::Unknown => return "*known after the apply*".to_owned(),
        Side::Text(shown) => (shown, "\""),
        Side::Json(shown) => (shown, ""),
    };
    let end = if *cut > 0 { "" } else { quote };
    let quoted = format!("{quote}{text}{end}");
    let lines: Vec<String> = quoted.split('\n').map(as_code).collect();
    let mut shown = lines.join("<br>");
    if *cut > 0 {
        shown.push_str(&format!(" *… and {cut} characters more*"));
    }
    shown
}
