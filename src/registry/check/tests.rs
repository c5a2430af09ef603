//! Each check on a registry that has its fault, and on one that has none.

use super::*;

fn found(text: &str) -> Vec<String> {
    let checked = check(text, &Layout::default());
    let line = |f: &Finding| format!("{} {} {}: {}", f.at, f.severity(), f.check.name, f.message);
    checked.findings.iter().map(line).collect()
}

fn app(name: &str, more: &str) -> String {
    format!("  {name}:\n    repo: https://github.com/example/{name}.git\n{more}")
}

const STAGES: &str = "    stages: {prd: {}}\n";

#[test]
fn a_sound_registry_has_no_finding_and_is_counted() {
    let text = format!(
        "apps:\n{}{}",
        app("a", STAGES),
        app("b", "    stages: {dev: {}, prd: {}}\n")
    );
    let checked = check(&text, &Layout::default());
    assert_eq!(checked.findings, []);
    assert_eq!((checked.apps, checked.stages), (2, 3));
}

#[test]
fn what_is_no_registry_is_the_only_finding() {
    assert_eq!(
        found("apps:\n  a: {}\n  a: {}\n"),
        ["3:3 error yaml: the key \"a\" is already set at 2:3; remove one of the two"]
    );
    assert_eq!(
        found("apps: {}\n"),
        [
            "1:7 error shape: \"apps\" has no app in it; a registry has `apps:` with one key for each app"
        ]
    );
}

#[test]
fn all_faults_of_all_entries_are_told_at_once() {
    let text = "apps:\n  A_1:\n    stages: {prd: {version: '1'}}\n  b:\n    repo: https://github.com/example/b.git\n    stags: {}\n";
    let found = found(text);
    assert_eq!(found.len(), 5, "{found:#?}");
    assert!(
        found.iter().all(|line| line.contains(" error entry: ")),
        "{found:#?}"
    );
}

#[test]
fn as_few_entries_as_can_be_are_out_of_order_and_where_each_belongs_is_told() {
    let text = format!(
        "apps:\n{}{}{}{}",
        app("b", STAGES),
        app("c", STAGES),
        app("a", STAGES),
        app("d", STAGES)
    );
    assert_eq!(
        found(&text),
        ["8:3 warning order: apps.a stands after apps.c; it belongs before apps.b"]
    );
    let text = format!(
        "apps:\n{}{}{}{}{}",
        app("c", STAGES),
        app("m", STAGES),
        app("b", STAGES),
        app("e", STAGES),
        app("x", STAGES)
    );
    assert_eq!(
        found(&text),
        [
            "2:3 warning order: apps.c stands before apps.b; it belongs after apps.b",
            "5:3 warning order: apps.m stands before apps.b; it belongs after apps.e"
        ]
    );
    let text = format!(
        "apps:\n{}{}{}",
        app("z", STAGES),
        app("a", STAGES),
        app("b", STAGES)
    );
    assert_eq!(
        found(&text),
        ["2:3 warning order: apps.z stands before apps.a; it belongs after apps.b"]
    );
}

#[test]
fn a_path_that_does_not_end_as_the_app_is_called_is_told() {
    let text = format!(
        "apps:\n{}",
        app("a", &format!("    path: apps/b\n{STAGES}"))
    );
    assert_eq!(
        found(&text),
        [
            "2:3 warning path-name: apps.a: its path is apps/b; name the folder a, or the app after its folder"
        ]
    );
}

#[test]
fn two_entries_of_the_same_stage_and_an_app_in_a_stages_folder_are_errors() {
    let mono = |name: &str, path: &str, stage: &str| {
        format!(
            "  {name}:\n    repo: https://github.com/example/Mono.git\n    path: {path}\n    stages: {{{stage}: {{}}}}\n"
        )
    };
    let same = format!(
        "apps:\n{}{}",
        mono("a", "x/a", "prd"),
        mono("b", "x/a", "prd")
    );
    let found_same = found(&same);
    assert!(
        found_same.iter().any(|line| line.contains(
            "error same-stage: apps.b.stages.prd: apps.a.stages.prd at 5:14 deploys the same stage of the same path and repository"
        )),
        "{found_same:#?}"
    );
    let through = format!(
        "apps:\n{}{}",
        mono("a", "a", "b"),
        mono("b", "a/b/b", "prd")
    );
    assert_eq!(
        found(&through),
        [
            "6:3 error path-through-stage: apps.b: its path a/b/b goes through the folder where apps.a.stages.b at 5:14 has its state; \
             give the app another path"
        ]
    );
}

#[test]
fn names_that_are_too_long_or_meet_are_errors() {
    let long = "a".repeat(60);
    let text = format!("apps:\n{}", app(&long, "    stages: {prod: {}}\n"));
    let told = found(&text);
    assert_eq!(told.len(), 1);
    assert!(told[0].starts_with("4:14 error long-name: "), "{told:#?}");
    let text = format!(
        "apps:\n{}{}",
        app("a", "    stages: {b-c: {}}\n"),
        app("a-b", "    stages: {c: {}}\n")
    );
    assert_eq!(
        found(&text),
        [
            "7:14 error same-name: apps.a-b.stages.c: apps.a.stages.b-c at 4:14 is called a-b-c too, so both would be one Application and \
             one namespace; choose another key"
        ]
    );
}

#[test]
fn urls_are_written_in_one_way() {
    let entry = |name: &str, url: &str, path: &str| {
        format!("  {name}:\n    repo: {url}\n    path: {path}\n{STAGES}")
    };
    for (url, what) in [
        (
            "https://github.com/example/Mono",
            "does not end with \".git\"",
        ),
        ("https://github.com/example/Mono.git/", "ends with \"/\""),
        ("https://GitHub.com/example/Mono.git", "capital letters"),
        ("git@github.com:example/Mono.git", "is no https:// URL"),
    ] {
        let told = found(&format!("apps:\n{}", entry("a", url, "a")));
        assert!(
            told.len() == 1 && told[0].contains(what),
            "{url}: {told:#?}"
        );
    }
    let text = format!(
        "apps:\n{}{}",
        entry("a", "https://github.com/example/Mono.git", "a"),
        entry("b", "https://github.com/example/mono.git", "b")
    );
    let told = found(&text);
    assert!(
        told.len() == 1
            && told[0].contains("spelled https://github.com/example/Mono.git in apps.a"),
        "{told:#?}"
    );
}

#[test]
fn a_revision_that_does_not_move_is_told() {
    let text = |revision: &str| {
        format!(
            "apps:\n{}",
            app(
                "a",
                &format!("    stages: {{prd: {{targetRevision: {revision}}}}}\n")
            )
        )
    };
    for revision in [
        "HEAD",
        "refs/heads/main",
        "'v1.*'",
        "0a1b2c3d",
        "'>=1.2'",
        "main/",
        "'feature\\new'",
        ".next",
        "a..b",
    ] {
        let told = found(&text(revision));
        assert!(
            told.len() == 1 && told[0].contains("warning target-revision"),
            "{revision}: {told:#?}"
        );
    }
    for branch in ["main", "release/1.2", "feedbeef", "prd"] {
        assert_eq!(found(&text(branch)), Vec::<String>::new(), "{branch}");
    }
}

#[test]
fn every_check_has_a_name_of_its_own_and_an_explanation() {
    let mut names: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
    assert!(CHECKS.iter().all(|check| check.explanation.len() > 40));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), CHECKS.len());
}
