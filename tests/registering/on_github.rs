//! Whole registrations with GitHub as the forge, by the program itself, against the double.

use std::sync::Arc;

use crate::estate::{Estate, FILE, shown};
use crate::github::{Fault, GitHub, TOKEN, What};
use crate::repositories::commit;

/// The estate, at home on GitHub.
struct Site {
    estate: Estate,
    github: GitHub,
}

impl Site {
    fn new(apps: usize) -> Site {
        let estate = Estate::new(apps);
        let github = GitHub::serve(&estate.path().join("git"));
        std::fs::write(estate.path().join("token"), format!("{TOKEN}\n")).unwrap();
        let api = github.api();
        estate.settings(&format!(
            "{{github: {{owner: example, api: '{api}', token_file: token}}}}"
        ));
        Site { estate, github }
    }

    /// Registers the first app, with this code; what it says.
    fn register(&self, code: i32, arguments: &[&str]) -> String {
        let (ended, said) = self.estate.run(0, arguments);
        assert_eq!(ended, code, "{said}");
        assert!(!said.contains(TOKEN), "{said}");
        said
    }

    /// The writes since the last call.
    fn writes(&self) -> Vec<String> {
        let seen = self.github.seen().into_iter();
        let writes = seen.filter(|seen| seen.method != "GET");
        writes.map(|s| format!("{} {}", s.method, s.path)).collect()
    }

    fn commits(&self) -> usize {
        let log = shown(self.estate.path(), &["log", "--format=%s", "main"]);
        log.lines().count()
    }
}

const ENTRY: &str =
    "  - id: app0-deploy\n    repo: example/Many\n    jenkinsJob: AaC/Many\n    path: app0\n";

#[test]
fn a_producer_is_registered_by_four_writes_and_the_second_time_by_none() {
    let site = Site::new(1);
    let said = site.register(0, &["--build", "7", "-v"]);
    let head = shown(site.estate.path(), &["rev-parse", "main"]);
    assert!(
        said.contains(&format!(
            "Registered: app0-deploy, by commit {}",
            head.trim_end()
        )),
        "{said}"
    );
    assert_eq!(site.estate.file(), format!("{FILE}{ENTRY}"));
    assert_eq!(
        site.writes(),
        [
            "POST /repos/example/Architecture/git/blobs",
            "POST /repos/example/Architecture/git/trees",
            "POST /repos/example/Architecture/git/commits",
            "PATCH /repos/example/Architecture/git/refs/heads/main",
        ]
    );

    let said = site.register(0, &["--build", "8"]);
    assert!(said.contains("nothing, the file says it already"), "{said}");
    assert_eq!((site.writes().len(), site.commits()), (0, 2));
}

#[test]
fn an_entry_is_shown_pointed_elsewhere_and_removed() {
    let site = Site::new(1);
    site.register(0, &["--dry-run"]);
    assert!(site.writes().is_empty());
    site.register(0, &[]);
    // As the app had it before it moved into the monorepo.
    let head = shown(site.estate.path(), &["rev-parse", "main"]);
    let old = "  - id: app0-deploy # mine\n    repo: example/App0\n    jenkinsJob: AaC/App0\n";
    let text = format!("{FILE}{old}");
    commit(
        &site.estate.path().join("git/Architecture.git"),
        "main",
        Some(head.trim_end()),
        &[("pipeline-producers.yaml", &text)],
    );
    site.register(3, &[]);
    site.register(0, &["--repoint"]);
    let file = site.estate.file();
    assert!(file.contains("  - id: app0-deploy # mine\n"), "{file}");
    assert!(file.contains("    repo: example/Many\n"), "{file}");
    assert!(file.contains("    path: app0\n"), "{file}");
    let (code, said) = site.estate.ask(&["--id", "app0-deploy", "--remove"]);
    assert_eq!((code, site.estate.file().as_str()), (0, FILE), "{said}");
}

#[test]
fn two_at_once_both_land() {
    Site::new(2).estate.all_land(2);
}

#[test]
fn a_lost_race_is_judged_again_on_what_is_there_then() {
    let site = Site::new(1);
    let repository = site.estate.path().join("git/Architecture.git");
    let before = format!("{FILE}  - id: other-deploy\n    jenkinsJob: AaC/Other\n");
    let text = before.clone();
    let meanwhile = move || {
        let head = git2::Repository::open_bare(&repository).unwrap();
        let head = head.refname_to_id("refs/heads/main").unwrap().to_string();
        let files = [("pipeline-producers.yaml", text.as_str())];
        commit(&repository, "main", Some(&head), &files);
    };
    let race = What::Meanwhile(Arc::new(meanwhile));
    site.github.fault(Fault::once("PATCH", "/git/refs/", race));
    site.register(0, &[]);
    assert_eq!(site.estate.file(), format!("{before}{ENTRY}"));
    assert_eq!(site.commits(), 3);
}

#[test]
fn a_commit_whose_answer_is_lost_is_made_once_and_told() {
    let site = Site::new(1);
    for what in [What::AnswerAfter(502), What::CutAfter] {
        let before = site.commits();
        site.github.fault(Fault::once("PATCH", "/git/refs/", what));
        let said = site.register(0, &[]);
        let head = shown(site.estate.path(), &["rev-parse", "main"]);
        assert!(said.contains(head.trim_end()), "{said}");
        assert_eq!(site.commits(), before + 1);
        let (code, said) = site.estate.ask(&["--id", "app0-deploy", "--remove"]);
        assert_eq!(code, 0, "{said}");
    }
}

#[test]
fn a_repository_that_was_renamed_is_told_before_any_write() {
    for (old, code) in [("Architecture", 2), ("Many", 3)] {
        let site = Site::new(1);
        site.github.change(|account| {
            account.renamed.insert(old, "TerraformState");
        });
        let said = site.register(code, &[]);
        assert!(said.contains("it is now example/TerraformState"), "{said}");
        assert!(site.writes().is_empty());
        assert_eq!(site.estate.file(), FILE);
    }
}

#[test]
fn a_repository_that_takes_no_commit_is_told_before_any_write() {
    let site = Site::new(1);
    site.github.change(|account| account.archived = true);
    let said = site.register(3, &[]);
    assert!(
        said.contains("Architecture could not be written\n  because: it is archived"),
        "{said}"
    );
    // What is shown alone needs no write.
    site.register(0, &["--dry-run"]);
    site.github.change(|account| {
        account.archived = false;
        account.push = false;
    });
    let said = site.register(1, &[]);
    assert!(said.contains("the token may not do this"), "{said}");
    assert!(site.writes().is_empty());
    assert_eq!(site.estate.file(), FILE);
}
