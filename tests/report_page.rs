//! The report in a real browser: on a phone and on a desk, by day and by night, on paper, without asking for anything.
//! `STAGEWRIGHT_PICTURES=DIR` keeps the pictures that are taken on the way.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "support/browser.rs"]
mod browser;
#[path = "support/crowded.rs"]
mod crowded;
#[path = "support/program.rs"]
mod program;
#[path = "support/tools.rs"]
mod tools;

use std::path::{Path, PathBuf};

use browser::Browser;
use stagewright::page;

/// Reports as the programs write them, and one with everything that could break a page.
struct Reports {
    folder: tempfile::TempDir,
}

const REPORTS: [&str; 3] = ["plan", "preview", "crowded"];

impl Reports {
    fn write() -> Reports {
        let folder = tempfile::tempdir().unwrap();
        let plan = [
            "--sandbox",
            "--repo",
            "PlatformDeploy",
            "--app-path",
            "headlamp",
            "--stage",
            "prd",
            "--report",
            "plan.html",
        ];
        let run = program::plan(folder.path(), &plan);
        assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
        let preview = [
            "preview",
            "--sandbox",
            "--repo",
            "FieldnotesDeploy",
            "--stage",
            "demo",
            "--namespace",
            "fieldnotes-demo",
            "--report",
            "preview.html",
        ];
        let destroy_stage = env!("CARGO_BIN_EXE_stagewright-destroy-stage");
        let run = program::run(destroy_stage, folder.path(), &preview);
        assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
        let crowded = page::html(&crowded::page());
        std::fs::write(folder.path().join("crowded.html"), crowded).unwrap();
        Reports { folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.html"))
    }
}

fn browser() -> Option<Browser> {
    let what = "Chromium (Debian's package chromium)";
    let program = tools::found_or_left_out(what, "STAGEWRIGHT_TOOLS_REQUIRED", browser::program())?;
    Some(Browser::start(&program))
}

fn keep(name: &str, bytes: &[u8]) {
    if let Some(folder) = std::env::var_os("STAGEWRIGHT_PICTURES") {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(Path::new(&folder).join(name), bytes).unwrap();
    }
}

/// Elements that reach beyond the right edge, and whether the page can be moved sideways.
const BEYOND: &str = "(() => {
  const width = document.documentElement.clientWidth;
  const beyond = [...document.body.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > width + 0.5
    && !e.closest('thead'));
  const moves = document.documentElement.scrollWidth > width ? ['the page'] : [];
  return moves.concat(beyond.map(e => e.outerHTML.slice(0, 80)));
})()";

/// Texts whose contrast with what is behind them is less than WCAG 2.2 asks for (1.4.3: 4.5 to 1).
const FAINT: &str = "(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
  const rgba = colour => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data; };
  const light = ([r, g, b]) => { const part = v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b); };
  const behind = e => { for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] == 255) return c; }
    return [255, 255, 255]; };
  const texts = [...document.body.querySelectorAll('*')].filter(e => [...e.childNodes].some(n => n.nodeType == 3 && n.data.trim()));
  const contrast = e => { const [a, b] = [light(rgba(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05); };
  return [texts.length].concat(texts.filter(e => contrast(e) < 4.5).map(e => `${contrast(e).toFixed(2)} ${e.outerHTML.slice(0, 80)}`));
})()";

#[test]
fn a_report_fits_a_phone_and_a_desk_and_can_be_read_by_day_and_by_night() {
    let Some(mut browser) = browser() else { return };
    let reports = Reports::write();
    for name in REPORTS {
        for width in [360, 1280] {
            let mut pictures = Vec::new();
            for scheme in ["light", "dark"] {
                browser.shown_as("screen", scheme);
                browser.open(&reports.file(name), width);
                let beyond = browser.value(BEYOND);
                assert_eq!(beyond, serde_json::json!([]), "{name} at {width}");
                let faint = browser.value(FAINT);
                assert!(faint[0].as_u64().unwrap() > 20, "{faint}");
                assert_eq!(
                    faint.as_array().unwrap().len(),
                    1,
                    "{name}, {scheme}: {faint}"
                );
                let picture = browser.picture();
                keep(&format!("{name}-{width}-{scheme}.png"), &picture);
                pictures.push(picture);
            }
            assert_ne!(
                pictures[0], pictures[1],
                "{name} at {width}: dark is as light"
            );
        }
    }
    // The measures can fail.
    let wide = reports.file("wide");
    std::fs::write(
        &wide,
        "<p style='width: 2000px; color: #888; background: #999'>x</p>",
    )
    .unwrap();
    browser.open(&wide, 360);
    assert_ne!(browser.value(BEYOND), serde_json::json!([]));
    assert_eq!(browser.value(FAINT).as_array().unwrap().len(), 2);
}

#[test]
fn a_report_asks_for_nothing_and_takes_nothing_from_outside_for_its_own() {
    let Some(mut browser) = browser() else { return };
    let reports = Reports::write();
    for name in REPORTS {
        let file = reports.file(name);
        let asked = browser.open(&file, 1280);
        assert_eq!(asked, [format!("file://{}", file.display())], "{name}");
        let foreign = "document.querySelectorAll('script,img,iframe,object,embed,a,base,form,link,svg,[style],[onerror],[onload]').length";
        assert_eq!(browser.value(foreign), 0, "{name}");
    }
    // What looks like mark-up there is its text.
    let shown = browser.value("document.body.textContent");
    assert!(shown.as_str().unwrap().contains(crowded::HOSTILE));
    assert_eq!(browser.value("window.touched === undefined"), true);
    // The program may ask on its own account, which is nothing of the page's.
    let beyond = browser.asked_beyond();
    assert!(!beyond.contains("example.com"), "{beyond}");
    // And a page that does ask is found out.
    let asking = reports.file("asking");
    std::fs::write(&asking, "<img src='http://example.com/x.png'>").unwrap();
    assert_eq!(browser.open(&asking, 1280).len(), 2);
    let beyond = browser.asked_beyond();
    assert!(beyond.contains("http://example.com/x.png"), "{beyond}");
}

#[test]
fn on_paper_every_change_is_unfolded() {
    let Some(mut browser) = browser() else { return };
    let reports = Reports::write();
    let file = reports.file("crowded");
    browser.open(&file, 1280);
    let unseen =
        "[...document.querySelectorAll('details table')].filter(t => !t.checkVisibility()).length";
    assert_eq!(browser.value(unseen), 12);
    browser.shown_as("print", "dark");
    assert_eq!(browser.value(unseen), 0);
    assert_eq!(
        browser.value("getComputedStyle(document.body).color"),
        "rgb(0, 0, 0)"
    );
    for name in REPORTS {
        browser.open(&reports.file(name), 760);
        assert_eq!(browser.value(BEYOND), serde_json::json!([]), "{name}");
        keep(&format!("{name}-print.png"), &browser.picture());
        let pdf = browser.pdf();
        assert!(pdf.starts_with(b"%PDF-"), "{name}");
        keep(&format!("{name}.pdf"), &pdf);
    }
}

#[test]
fn tables_stay_tables_for_a_screen_reader_on_a_phone() {
    let Some(mut browser) = browser() else { return };
    let reports = Reports::write();
    browser.open(&reports.file("plan"), 360);
    let tree = browser.ask("Accessibility.getFullAXTree", &serde_json::json!({}));
    let nodes = tree["nodes"].as_array().unwrap();
    let count = |role: &str| {
        nodes
            .iter()
            .filter(|node| node["role"]["value"] == role)
            .count()
    };
    let tables = browser.value("document.querySelectorAll('table').length");
    assert_eq!(count("table") as u64, tables.as_u64().unwrap());
    assert!(count("columnheader") >= 2 * count("table"));
    assert!(count("rowheader") > count("table"));
    assert_eq!(browser.value("document.documentElement.lang"), "en");
    let levels = "[...document.querySelectorAll('h1,h2,h3')].map(h => h.tagName).join().replace(/(,H2)+$/, '')";
    assert_eq!(browser.value(levels), "H1");
}
