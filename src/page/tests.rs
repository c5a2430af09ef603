use super::*;
use crate::terraform::values::Values;

/// What must never be heard as mark-up, whatever form the page has.
const HOSTILE: &str = "<script>alert(1)</script>\"'><img src=x onerror=y>|`**[a](javascript:b)**\n# h\u{202e}\u{1b}[2K&amp;";

fn values(json: &str) -> ValuesOf {
    let json = format!(r#"{{"resources": [{json}], "outputs": [], "left_out": 0}}"#);
    let mut values: Values = serde_json::from_str(&json).unwrap();
    values.resources.remove(0)
}

fn item(address: &str, action: Action, values: Option<ValuesOf>) -> Item {
    Item {
        address: address.to_owned(),
        action,
        words: action.word().to_owned(),
        data: None,
        notes: Vec::new(),
        values,
    }
}

fn page(changes: Vec<Item>) -> Page {
    Page {
        kind: "Plan".to_owned(),
        target: "PlatformDeploy/shop/prd".to_owned(),
        verdict: Verdict {
            tone: Tone::Grave,
            word: "Failed".to_owned(),
            error: Some("no".to_owned()),
            last_line: "Next: that.".to_owned(),
        },
        warnings: Vec::new(),
        facts: vec![Fact::new("commit", "0123")],
        parts: vec![Part {
            heading: "Changes".to_owned(),
            tone: Tone::Calm,
            body: Body::Changes {
                changes,
                left_out: 3,
            },
        }],
        made: "Made at noon".to_owned(),
    }
}

/// A page that holds the text at every place to which one from outside comes.
fn everywhere(text: &str) -> Page {
    let quoted = serde_json::to_string(text).unwrap();
    let values = values(&format!(
        r#"{{"address": "a.b", "same": 0, "attributes": [
        {{"path": {quoted}, "before": {{"text": {{"text": {quoted}}}}}, "after": {{"json": {{"text": {quoted}, "cut": 9}}}}}}]}}"#
    ));
    let mut change = item(text, Action::Update, Some(values));
    change.notes = vec![text.to_owned()];
    change.data = Some(text.to_owned());
    change.words = text.to_owned();
    let mut page = page(vec![change]);
    page.target = text.to_owned();
    page.kind = text.to_owned();
    page.warnings = vec![text.to_owned()];
    page.facts = vec![Fact::new(text, text)];
    page.verdict.error = Some(text.to_owned());
    page.verdict.last_line = text.to_owned();
    page.parts.push(Part {
        heading: text.to_owned(),
        tone: Tone::Notice,
        body: Body::Lines(vec![text.to_owned()]),
    });
    let cells = || vec![text.to_owned(), text.to_owned()];
    page.parts.push(Part {
        heading: "t".to_owned(),
        tone: Tone::Notice,
        body: Body::Table {
            head: cells(),
            rows: vec![cells()],
        },
    });
    page
}

#[test]
fn a_report_is_html_or_markdown_by_its_name_and_nothing_else() {
    for (name, begins) in [("r.html", "<!doctype html>"), ("a.b/r.md", "# Plan")] {
        let file: ReportFile = name.parse().unwrap();
        assert!(file.show(&page(Vec::new())).starts_with(begins), "{name}");
    }
    for name in [
        "report",
        "r.txt",
        "r.pdf",
        ".html",
        "r.html.gz",
        "r.HTML",
        "",
    ] {
        assert!(name.parse::<ReportFile>().is_err(), "{name}");
    }
}

#[test]
fn nothing_from_outside_is_markup_of_the_page() {
    let html = html(&everywhere(HOSTILE));
    for tag in ["<script", "<img", "onerror=y>"] {
        assert!(!html.contains(tag), "{tag}");
    }
    // Between the tags of our own and in their attributes stands no quote and no bracket of anybody else's.
    let plain = everywhere("x");
    let own = super::html(&plain).matches('<').count();
    let written_out = html.matches("<i>⟨").count() * 2;
    let lines = html.matches("<pre").count()
        + html.matches("<del>").count()
        + html.matches("<ins>").count();
    assert!(html.matches('<').count() <= own + written_out + 2 * lines + 4);
    assert!(html.contains("⟨U+202E⟩") && html.contains("⟨U+001B⟩"));
    assert!(!html.contains('\u{202e}') && !html.contains('\u{1b}'));
}

#[test]
fn a_page_asks_for_nothing_and_runs_nothing() {
    let html = html(&everywhere("https://example.com/x.js"));
    assert!(html.contains(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    ));
    for asking in [
        "src=", "href=", "url(", "@import", "<script", "<link", "<form", "<iframe",
    ] {
        assert!(!html.contains(asking), "{asking}");
    }
}

#[test]
fn nothing_from_outside_is_markup_of_the_markdown() {
    let text = markdown(&everywhere(HOSTILE));
    for line in text.lines() {
        // Out of code, every bracket, pipe and backquote of theirs has its backslash.
        assert!(!line.starts_with("# h"), "{line}");
        let harmless = line.replace("\\<", "").replace("`<script>", "");
        assert!(
            !harmless.contains("<script") && !harmless.contains("<img"),
            "{line}"
        );
        assert!(!line.contains(" [a](javascript"), "{line}");
    }
    let cells = |line: &str| line.replace("\\|", "").matches('|').count();
    for line in text.lines().filter(|line| line.starts_with("| ")) {
        assert!([3, 4].contains(&cells(line)), "{line}");
    }
}

#[test]
fn in_markdown_no_address_is_a_link_and_nobody_is_called() {
    for (text, written) in [
        ("see https://example.com", "see https:<!-- -->//example.com"),
        ("www.example.com", "www<!-- -->.example.com"),
        ("by @all", "by @<!-- -->all"),
        ("a_b*c _d_", "a_b\\*c \\_d\\_"),
        ("1. one", "1\\. one"),
        ("- one", "\\- one"),
        ("3.4 and 5-6", "3\\.4 and 5-6"),
        ("a|b", "a\\|b"),
    ] {
        assert_eq!(escape::in_markdown(text), written);
    }
    for (text, written) in [
        ("a`b", "``a`b``"),
        ("`", "`` ` ``"),
        ("a|<b>", "<code>a&#124;&#60;b&#62;</code>"),
        ("plain[\"x\"]", "`plain[\"x\"]`"),
    ] {
        assert_eq!(escape::as_code(text), written);
    }
}

#[test]
fn what_cannot_be_seen_is_written_out() {
    assert_eq!(
        escape::visible("a\u{202e}b\0c\u{200b}d\u{1f469}e\tf"),
        "a⟨U+202E⟩b⟨U+0000⟩c⟨U+200B⟩d👩e\tf"
    );
}

#[test]
fn before_and_after_stand_side_by_side_and_what_is_sensitive_is_said_to_be_hidden() {
    let values = values(
        r#"{"address": "a.b", "same": 2, "attributes": [
        {"path": "size", "before": {"json": {"text": "1"}}, "after": {"json": {"text": "2"}}, "replaces": true},
        {"path": "password", "before": "hidden", "after": "hidden"},
        {"path": "ip", "before": {"text": {"text": ""}}, "after": "unknown"},
        {"path": "list", "before": {"json": {"text": "[\n  1,\n  2\n]"}}, "after": {"json": {"text": "[\n  2,\n  3\n]"}}},
        {"path": "policy", "before": "absent", "after": {"text": {"text": "long", "cut": 7}}}]}"#,
    );
    let page = page(vec![item("a.b", Action::DestroyThenCreate, Some(values))]);
    let html = html(&page);
    for piece in [
        "<th scope=\"col\" role=\"columnheader\">Before</th><th scope=\"col\" role=\"columnheader\">After</th>",
        "<code dir=\"ltr\">size</code> <em>forces replacement</em>",
        "<code dir=\"ltr\">1</code></td><td role=\"cell\" data-column=\"After\"><code dir=\"ltr\">2</code>",
        "sensitive: hidden",
        "<code dir=\"ltr\">\"\"</code>",
        "known after the apply",
        "<pre dir=\"ltr\">[\n<del>  1,</del>\n  2\n]</pre>",
        "<pre dir=\"ltr\">[\n  2,\n<ins>  3</ins>\n]</pre>",
        "not set",
        "\"long</code> <span class=\"none\">… and 7 characters more</span>",
        "2 attributes stay as before",
        "3 changes stand here without values",
    ] {
        assert!(html.contains(piece), "{piece}\n{html}");
    }
    let text = markdown(&page);
    for row in [
        "| `size` *forces replacement* | `1` | `2` |",
        "| `password` | *sensitive: hidden* | *sensitive: hidden* |",
        "| `ip` | `\"\"` | *known after the apply* |",
        "| `policy` | *not set* | `\"long` *… and 7 characters more* |",
    ] {
        assert!(text.contains(row), "{row}\n{text}");
    }
}

#[test]
fn what_is_destroyed_has_no_empty_column_for_what_comes_after() {
    let values = values(
        r#"{"address": "a.b", "same": 0, "attributes": [{"path": "id", "before": {"text": {"text": "x"}}, "after": "absent"}]}"#,
    );
    let page = page(vec![item("a.b", Action::Destroy, Some(values))]);
    assert!(!html(&page).contains(">After<"));
    assert!(markdown(&page).contains("| Attribute | Before |\n| --- | --- |\n| `id` | `\"x\"` |"));
}

#[test]
fn a_long_list_of_changes_is_folded_and_a_short_one_lies_open() {
    let with_notes = |count: usize| {
        let changes = (0..count).map(|n| {
            let mut item = item(&format!("a.b[{n}]"), Action::Destroy, None);
            item.notes = vec!["note".to_owned()];
            item
        });
        html(&page(changes.collect()))
    };
    assert_eq!(with_notes(12).matches("<details open").count(), 12);
    let folded = with_notes(13);
    assert_eq!(folded.matches("<details").count(), 13);
    assert!(!folded.contains("<details open"));
}
