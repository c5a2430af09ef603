//! The page as HTML: one file, no script, nothing loaded; it can be read without its style as well, which some servers of build
//! artifacts forbid.

use std::collections::BTreeSet;

use crate::terraform::values::{Attribute, Shown, Side, ValuesOf};

use super::escape::in_html;
use super::style::STYLE;
use super::{
    Body, Fact, Item, Page, Part, Tone, Verdict, beside, sign_of, tone_of, without_values,
};

/// As many changes of one part are shown opened.
const OPENED: usize = 12;

/// The page.
pub fn html(page: &Page) -> String {
    let title = format!("{}: {}", page.kind, page.target);
    let mut html = Html(String::new());
    html.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    html.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n");
    html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    html.raw("<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n");
    html.raw("<title>").text(&title).raw("</title>\n<style>");
    html.raw(STYLE).raw("</style>\n</head>\n<body>\n<header>\n");
    html.raw("<p class=\"kind\">")
        .text(&page.kind)
        .raw("</p>\n");
    html.raw("<h1><code dir=\"ltr\">");
    for (at, name) in page.target.split('/').enumerate() {
        // It may be broken behind a slash.
        html.raw(if at > 0 { "/<wbr>" } else { "" }).text(name);
    }
    html.raw("</code></h1>\n");
    html.verdict(&page.verdict);
    html.raw("</header>\n<main>\n");
    html.facts(&page.facts);
    if !page.warnings.is_empty() {
        html.part(&Part {
            heading: "Warnings".to_owned(),
            tone: Tone::Notice,
            body: Body::Lines(page.warnings.clone()),
        });
    }
    for part in &page.parts {
        html.part(part);
    }
    html.raw("</main>\n<footer><p>")
        .text(&page.made)
        .raw("</p></footer>\n</body>\n</html>\n");
    html.0
}

fn class_of(tone: Tone) -> &'static str {
    match tone {
        Tone::Calm => "calm",
        Tone::Notice => "notice",
        Tone::Grave => "grave",
    }
}

/// What is written so far. Only [`Html::raw`] writes mark-up, and it takes none from outside.
struct Html(String);

impl Html {
    fn raw(&mut self, markup: &str) -> &mut Html {
        self.0.push_str(markup);
        self
    }

    fn text(&mut self, text: &str) -> &mut Html {
        self.0.push_str(&in_html(text));
        self
    }

    /// A name from outside, which does not turn the direction of what stands beside it.
    fn code(&mut self, text: &str) -> &mut Html {
        self.raw("<code dir=\"ltr\">").text(text).raw("</code>")
    }

    fn verdict(&mut self, verdict: &Verdict) {
        let Verdict {
            tone,
            word,
            error,
            last_line,
        } = verdict;
        let class = class_of(*tone);
        self.raw(&format!(
            "<div class=\"verdict {class}\">\n<p class=\"word\">"
        ));
        self.text(word).raw("</p>\n");
        if let Some(error) = error {
            self.raw("<p class=\"error\">").text(error).raw("</p>\n");
        }
        self.raw("<p>").text(last_line).raw("</p>\n</div>\n");
    }

    fn facts(&mut self, facts: &[Fact]) {
        if facts.is_empty() {
            return;
        }
        self.raw("<section class=\"card\">\n<h2>What it is about</h2>\n<dl>\n");
        for Fact { name, lines } in facts {
            self.raw("<div><dt>").text(name).raw("</dt>");
            for line in lines {
                self.raw("<dd>").text(line).raw("</dd>");
            }
            self.raw("</div>\n");
        }
        self.raw("</dl>\n</section>\n");
    }

    fn part(&mut self, part: &Part) {
        let class = class_of(part.tone);
        self.raw(&format!("<section class=\"{class}\">\n<h2>"));
        self.text(&part.heading).raw("</h2>\n");
        match &part.body {
            Body::Lines(lines) => {
                self.raw("<ul>\n");
                for line in lines {
                    self.raw("<li>").text(line).raw("</li>\n");
                }
                self.raw("</ul>\n");
            }
            Body::Table { head, rows } => self.table(head, rows),
            Body::Changes { changes, left_out } => {
                let opened = changes.len() <= OPENED;
                for change in changes {
                    self.change(change, opened);
                }
                if let Some(said) = without_values(*left_out) {
                    self.raw("<p class=\"aside\">").text(&said).raw("</p>\n");
                }
            }
        }
        self.raw("</section>\n");
    }

    fn table(&mut self, head: &[String], rows: &[Vec<String>]) {
        self.raw("<table class=\"counts\" role=\"table\">\n");
        self.head(head);
        self.raw("<tbody role=\"rowgroup\">\n");
        for row in rows {
            self.raw("<tr role=\"row\">");
            for (at, cell) in row.iter().enumerate() {
                match at {
                    0 => self
                        .raw("<th scope=\"row\" role=\"rowheader\">")
                        .text(cell)
                        .raw("</th>"),
                    _ => self.cell(head.get(at)).text(cell).raw("</td>"),
                };
            }
            self.raw("</tr>\n");
        }
        self.raw("</tbody>\n</table>\n");
    }

    /// The names of the columns. Roles stand there in words, since the style lays a table out in blocks on a phone.
    fn head<T: AsRef<str>>(&mut self, head: &[T]) {
        self.raw("<thead role=\"rowgroup\"><tr role=\"row\">");
        for name in head {
            self.raw("<th scope=\"col\" role=\"columnheader\">")
                .text(name.as_ref())
                .raw("</th>");
        }
        self.raw("</tr></thead>\n");
    }

    /// The beginning of a cell, which has the name of its column with it.
    fn cell<T: AsRef<str>>(&mut self, column: Option<T>) -> &mut Html {
        self.raw("<td role=\"cell\"");
        if let Some(name) = column {
            self.raw(" data-column=\"").text(name.as_ref()).raw("\"");
        }
        self.raw(">")
    }

    fn change(&mut self, item: &Item, opened: bool) {
        let class = class_of(tone_of(item.action));
        let values = item.values.as_ref();
        let aside = values.and_then(beside);
        let attributes = values.map_or(&[][..], |values| &values.attributes);
        let has_more = !item.notes.is_empty() || aside.is_some() || !attributes.is_empty();
        let (begin, end) = match (has_more, opened) {
            (true, true) => ("<details open", "details"),
            (true, false) => ("<details", "details"),
            (false, _) => ("<div", "div"),
        };
        self.raw(&format!("{begin} class=\"change {class}\">"));
        self.raw(if has_more {
            "<summary>"
        } else {
            "<p class=\"only\">"
        });
        self.raw("<span class=\"sign\" aria-hidden=\"true\">")
            .text(sign_of(item.action))
            .raw("</span> <span class=\"what\">");
        self.code(&item.address)
            .raw(" <span class=\"word\">")
            .text(&item.words)
            .raw("</span>");
        if let Some(data) = &item.data {
            self.raw(" <strong class=\"data\">holds data: ")
                .text(data)
                .raw("</strong>");
        }
        self.raw("</span>");
        self.raw(if has_more { "</summary>\n" } else { "</p>" });
        for note in &item.notes {
            self.raw("<p class=\"note\">").text(note).raw("</p>\n");
        }
        if let Some(values) = values.filter(|_| !attributes.is_empty()) {
            self.values(values);
        }
        if let Some(aside) = aside {
            self.raw("<p class=\"aside\">").text(&aside).raw("</p>\n");
        }
        self.raw(&format!("</{end}>\n"));
    }

    fn values(&mut self, values: &ValuesOf) {
        let attributes = &values.attributes;
        let had = attributes.iter().any(|a| a.before != Side::Absent);
        let has = attributes.iter().any(|a| a.after != Side::Absent);
        let mut head = vec!["Attribute"];
        head.extend(had.then_some("Before"));
        head.extend(has.then_some("After"));
        let class = if had && has { "values both" } else { "values" };
        self.raw(&format!("<table class=\"{class}\" role=\"table\">\n"));
        self.head(&head);
        self.raw("<tbody role=\"rowgroup\">\n");
        for attribute in attributes {
            let Attribute {
                path,
                before,
                after,
                replaces,
            } = attribute;
            self.raw("<tr role=\"row\"><th scope=\"row\" role=\"rowheader\">");
            match path.as_str() {
                "" => self.raw("the value"),
                path => self.code(path),
            };
            if *replaces {
                self.raw(" <em>forces replacement</em>");
            }
            self.raw("</th>");
            if had {
                self.cell(Some("Before")).side(before, after, "del");
                self.raw("</td>");
            }
            if has {
                self.cell(Some("After")).side(after, before, "ins");
                self.raw("</td>");
            }
            self.raw("</tr>\n");
        }
        self.raw("</tbody>\n</table>\n");
    }

    /// One side; of several lines those are marked that the other side has not.
    fn side(&mut self, side: &Side, other: &Side, mark: &str) -> &mut Html {
        let (shown, quote) = match side {
            Side::Absent => return self.raw("<span class=\"none\">not set</span>"),
            Side::Hidden => return self.raw("<span class=\"veil\">sensitive: hidden</span>"),
            Side::Unknown => return self.raw("<span class=\"none\">known after the apply</span>"),
            Side::Text(shown) => (shown, "\""),
            Side::Json(shown) => (shown, ""),
        };
        let Shown { text, cut } = shown;
        let end = if *cut > 0 { "" } else { quote };
        if text.contains('\n') {
            let others: BTreeSet<&str> = match other {
                Side::Text(other) | Side::Json(other) => other.text.lines().map(bare).collect(),
                Side::Absent | Side::Hidden | Side::Unknown => BTreeSet::new(),
            };
            self.raw("<pre dir=\"ltr\">").raw(quote);
            for (at, line) in text.split('\n').enumerate() {
                self.raw(if at > 0 { "\n" } else { "" });
                if others.is_empty() || others.contains(bare(line)) {
                    self.text(line);
                } else {
                    self.raw(&format!("<{mark}>"))
                        .text(line)
                        .raw(&format!("</{mark}>"));
                }
            }
            self.raw(end).raw("</pre>");
        } else {
            self.raw("<code dir=\"ltr\">")
                .raw(quote)
                .text(text)
                .raw(end)
                .raw("</code>");
        }
        if *cut > 0 {
            self.raw(&format!(
                " <span class=\"none\">… and {cut} characters more</span>"
            ));
        }
        self
    }
}

/// A line of a list, which has a comma behind it or not.
fn bare(line: &str) -> &str {
    line.strip_suffix(',').unwrap_or(line)
}
