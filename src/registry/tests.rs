use super::*;

const FILE: &str = "releases/values.yaml";

fn registry(text: &str) -> Registry {
    Registry::parse(text, FILE).unwrap()
}

fn error(text: &str) -> String {
    Registry::parse(text, FILE).unwrap_err().to_string()
}

fn faults(text: &str) -> Vec<String> {
    registry(text)
        .faults()
        .iter()
        .map(Fault::to_string)
        .collect()
}

/// The faults of an app with these lines below its repository.
fn faults_of(lines: &str) -> Vec<String> {
    faults(&format!(
        "apps:\n  fieldnotes:\n    repo: https://github.com/example/FieldnotesDeploy.git\n{lines}"
    ))
}

const WHOLE: &str = "\
global: {domain: example.org}
apps:
  fieldnotes:
    repo: https://github.com/example/FieldnotesDeploy.git
    stages:
      dev:
      prd: {autoSync: false, targetRevision: release}
  headlamp:
    repo: git@github.com:example/PlatformDeploy.git
    path: headlamp
    upstream: {repo: https://charts.example.org, chart: headlamp}
    syncOptions: [ServerSideApply=true]
    stages:
      prd: {version: 7.3.1}
";

#[test]
fn apps_and_stages_are_read_with_their_defaults() {
    let registry = registry(WHOLE);
    assert_eq!(registry.faults(), []);
    let apps: Vec<&App> = registry.apps().collect();
    assert_eq!(apps.len(), 2);
    assert_eq!(apps[0].name.as_str(), "fieldnotes");
    assert_eq!(apps[0].path, None);
    assert_eq!(apps[0].stages[0].name.as_str(), "dev");
    assert!(apps[0].stages[0].auto_sync);
    assert_eq!(apps[0].stages[0].target_revision, None);
    assert!(!apps[0].stages[1].auto_sync);
    assert_eq!(
        apps[0].stages[1].target_revision.as_deref(),
        Some("release")
    );
    assert_eq!(apps[0].stages[1].place, Place { line: 7, column: 7 });
    assert_eq!(apps[1].place, Place { line: 8, column: 3 });
    assert_eq!(apps[1].path.as_ref().unwrap().as_str(), "headlamp");
    assert_eq!(apps[1].upstream.as_ref().unwrap().chart, "headlamp");
    assert_eq!(apps[1].sync_options, ["ServerSideApply=true"]);
    assert_eq!(apps[1].stages[0].version.as_deref(), Some("7.3.1"));
}

#[test]
fn a_stage_is_found_by_repository_path_and_name() {
    let registry = registry(WHOLE);
    let repo: RepoUrl = "https://GITHUB.com/example/platformdeploy".parse().unwrap();
    let path: AppPath = "headlamp".parse().unwrap();
    let prd: StageName = "prd".parse().unwrap();
    let found = registry.find(&repo, Some(&path), &prd);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0.name.as_str(), "headlamp");
    assert_eq!(found[0].1.name.as_str(), "prd");
    assert!(registry.find(&repo, None, &prd).is_empty());
    assert!(
        registry
            .find(&repo, Some(&path), &"dev".parse().unwrap())
            .is_empty()
    );
    let upper: AppPath = "Headlamp".parse().unwrap();
    assert!(registry.find(&repo, Some(&upper), &prd).is_empty());
}

#[test]
fn windows_line_ends_read_the_same() {
    assert_eq!(registry(&WHOLE.replace('\n', "\r\n")), registry(WHOLE));
    assert_eq!(registry(WHOLE.trim_end()), registry(WHOLE));
}

#[test]
fn merged_and_aliased_stages_are_read_per_position() {
    let registry = registry(
        "base: &base\n  repo: https://h/o/r\n  stages: {dev: {}}\napps:\n  a:\n    <<: *base\n    stages: &s {prd: {}}\n  b:\n    repo: https://h/o/b\n    stages: *s\n  c:\n    repo: https://h/o/c\n    stages: &s {tst: {}}\n  d:\n    repo: https://h/o/d\n    stages: *s\n",
    );
    assert_eq!(registry.faults(), []);
    let stages: Vec<String> = registry
        .apps()
        .map(|app| format!("{} {} {}", app.name, app.repo, app.stages[0].name))
        .collect();
    assert_eq!(
        stages,
        [
            "a https://h/o/r prd",
            "b https://h/o/b prd",
            "c https://h/o/c tst",
            "d https://h/o/d tst"
        ]
    );
}

#[test]
fn a_registry_of_another_shape_is_an_error_and_never_empty() {
    let shape = "; a registry has `apps:` with one key for each app, and below it `repo:` and `stages:` with one key for each stage";
    for (text, said) in [
        ("", "1:1: the registry is empty"),
        ("# nothing\n", "1:1: the registry is empty"),
        ("other: {}\n", "1:1: the key \"apps\" is missing"),
        (
            "other: {}\nApps: {}\n",
            "2:1: the key \"apps\" is missing, and \"Apps\" is here",
        ),
        ("- a\n", "1:1: a list stands where a mapping is wanted"),
        ("text\n", "1:1: a text stands where a mapping is wanted"),
        (
            "apps: []\n",
            "1:7: \"apps\" holds a list where a mapping is wanted",
        ),
        ("apps: {}\n", "1:7: \"apps\" has no app in it"),
        (
            "apps:\n",
            "1:5: \"apps\" holds nothing where a mapping is wanted",
        ),
    ] {
        assert_eq!(error(text), format!("{FILE}:{said}{shape}"), "{text:?}");
    }
}

#[test]
fn what_is_no_single_sound_document_is_an_error_with_its_place() {
    assert_eq!(
        error("apps: {}\n---\napps: {}\n"),
        "releases/values.yaml:2:1: a second YAML document begins here; keep one document in the file, since Helm reads only the first"
    );
    assert_eq!(
        error("apps:\n  a: {}\n  a: {}\n"),
        "releases/values.yaml:3:3: the key \"a\" is already set at 2:3; remove one of the two"
    );
    assert_eq!(
        error("apps: ["),
        "releases/values.yaml:2:1: this is not valid YAML: while parsing a node, did not find expected node content; the \"[\" at 1:7 is still open"
    );
}

#[test]
fn names_that_helm_reads_otherwise_are_faults_and_quoted_ones_are_names() {
    for name in ["on", "off", "no", "y", "1e3", "0123", "0x1f", "12345678"] {
        let text =
            format!("apps:\n  {name}:\n    repo: https://h/o/r\n    stages: {{prd: {{}}}}\n");
        let found = faults(&text);
        assert_eq!(found.len(), 1, "{name}");
        assert!(
            found[0].starts_with(&format!(
                "releases/values.yaml:2:3: apps.{name}: Helm reads {name} without quotes as"
            )) && found[0].ends_with(&format!("write \"{name}\"")),
            "{found:?}"
        );
        assert_eq!(registry(&text).apps().count(), 0);
        let quoted = registry(&text.replace(&format!("  {name}:"), &format!("  \"{name}\":")));
        assert_eq!(quoted.apps().next().unwrap().name.as_str(), name);
        let stage = faults_of(&format!(
            "    stages:\n      {name}: {{}}\n      prd: {{}}\n"
        ));
        assert!(
            stage[0].starts_with(&format!(
                "releases/values.yaml:5:7: apps.fieldnotes.stages.{name}: Helm reads"
            )),
            "{stage:?}"
        );
    }
    for name in ["1_000", "1.10", ".5", "2024-01-01"] {
        let text =
            format!("apps:\n  {name}:\n    repo: https://h/o/r\n    stages: {{prd: {{}}}}\n");
        assert!(faults(&text)[0].contains("Helm reads"), "{name}");
    }
    for name in ["~", "null"] {
        let text = format!("apps:\n  {name}: {{repo: https://h/o/r, stages: {{prd: {{}}}}}}\n");
        assert!(error(&text).contains("a key that is null"), "{name}");
    }
    assert!(faults_of("    stages: {prd: {targetRevision: 1.10}}\n")[0].contains("as a number"));
    assert!(
        faults_of("    path: 0123\n    stages: {prd: {}}\n")[0].contains("\"path\": Helm reads")
    );
}

#[test]
fn a_quoted_key_that_is_no_name_is_a_fault() {
    let found =
        faults("apps:\n  \"team/app@v2\":\n    repo: https://h/o/r\n    stages: {prd: {}}\n");
    assert!(
        found[0].contains("the character \"/\" at position 5"),
        "{found:?}"
    );
}

#[test]
fn stages_of_another_shape_are_faults_with_the_wanted_shape() {
    let shape =
        "\"stages\" takes a mapping with one key for each stage, such as `stages: {prd: {}}`";
    for (lines, place, said) in [
        ("    stages: [prd]\n", "4:13", "\"stages\" holds a list; "),
        (
            "    stages: [{prd: {}}]\n",
            "4:13",
            "\"stages\" holds a list; ",
        ),
        ("    stages:\n", "4:11", "\"stages\" holds nothing; "),
        ("    stages: prd\n", "4:13", "\"stages\" holds a text; "),
        ("", "2:3", "the key \"stages\" is missing; "),
    ] {
        assert_eq!(
            faults_of(lines),
            [format!("{FILE}:{place}: apps.fieldnotes: {said}{shape}")],
            "{lines:?}"
        );
    }
    assert_eq!(
        faults_of("    stages: {}\n"),
        [
            "releases/values.yaml:4:13: apps.fieldnotes: \"stages\" has no stage in it; add one, or remove the app"
        ]
    );
    assert_eq!(
        faults_of("    stages: {prd: [a]}\n"),
        [
            "releases/values.yaml:4:19: apps.fieldnotes.stages.prd: a list stands where the stage's mapping is wanted, which may be {}"
        ]
    );
}

#[test]
fn a_fault_of_one_stage_leaves_the_others() {
    let text = "apps:\n  a:\n    repo: https://h/o/r\n    stages:\n      dev: {autosync: true}\n      prd: {}\n  b: null\n";
    let registry = registry(text);
    assert_eq!(registry.faults().len(), 2);
    assert_eq!(registry.faults()[0].app, "a");
    assert_eq!(registry.faults()[0].stage.as_deref(), Some("dev"));
    assert_eq!(
        registry.faults()[0].to_string(),
        "releases/values.yaml:5:13: apps.a.stages.dev: unknown key \"autosync\"; known are autoSync, targetRevision, version"
    );
    assert_eq!(registry.faults()[1].stage, None);
    let app = registry.apps().next().unwrap();
    assert_eq!(app.stages.len(), 1);
    assert_eq!(app.stages[0].name.as_str(), "prd");
}

#[test]
fn every_fault_of_an_app_is_told_at_once() {
    let found = faults("apps:\n  A:\n    pathh: x\n    path: ../x\n    stages: {P: {}}\n");
    assert_eq!(found.len(), 5, "{found:#?}");
}

#[test]
fn auto_sync_is_true_or_false_without_quotes() {
    for value in ["yes", "on", "'true'", "True", "1", "~"] {
        let found = faults_of(&format!("    stages: {{prd: {{autoSync: {value}}}}}\n"));
        assert!(
            found[0].ends_with("; write true or false, without quotes"),
            "{found:?}"
        );
    }
    assert!(
        faults_of("    stages: {prd: {autoSync: []}}\n")[0]
            .ends_with("\"autoSync\" holds a list; write true or false")
    );
}

#[test]
fn a_chart_version_is_given_exactly_with_an_upstream() {
    let upstream = "    upstream: {repo: https://charts.example.org, chart: x}\n";
    assert_eq!(
        faults_of(&format!("{upstream}    stages: {{prd: {{}}}}\n")),
        [
            "releases/values.yaml:5:14: apps.fieldnotes.stages.prd: the key \"version\" is missing; the chart of an app with \"upstream\" is pinned in each stage"
        ]
    );
    assert_eq!(
        faults_of("    stages: {prd: {version: 1.2.3}}\n"),
        [
            "releases/values.yaml:4:29: apps.fieldnotes.stages.prd: \"version\" pins the chart of an \"upstream\", and this app has none; remove it, or add \"upstream\" to the app"
        ]
    );
    assert!(
        faults_of(&format!(
            "{upstream}    stages: {{prd: {{version: 1.10}}}}\n"
        ))[0]
            .contains("write \"1.10\"")
    );
    assert!(
        faults_of("    upstream: {repo: x}\n    stages: {prd: {version: 1.2.3}}\n")[0]
            .contains("lacks \"chart\"")
    );
}

#[test]
fn a_sync_option_is_a_name_with_a_value() {
    for option in [
        "ServerSideApply",
        "ServerSideApply=",
        "=true",
        "'Server Side=true'",
        "{ServerSideApply: true}",
        "true",
    ] {
        let found = faults_of(&format!(
            "    syncOptions: [Validate=false, {option}]\n    stages: {{prd: {{}}}}\n"
        ));
        assert_eq!(found.len(), 1, "{option}: {found:?}");
        assert!(
            found[0].starts_with("releases/values.yaml:4:35: apps.fieldnotes: \"syncOptions\""),
            "{found:?}"
        );
    }
}

#[test]
fn a_repository_is_needed_and_must_be_one() {
    assert!(
        faults("apps:\n  a:\n    stages: {prd: {}}\n")[0].contains("the key \"repo\" is missing")
    );
    for bad in [
        "https://github.com",
        "FieldnotesDeploy",
        "https://me:pw@h/o/r",
        "ext::sh",
        "[]",
        "~",
    ] {
        let found = faults(&format!(
            "apps:\n  a:\n    repo: {bad}\n    stages: {{prd: {{}}}}\n"
        ));
        assert_eq!(found.len(), 1, "{bad}: {found:?}");
        assert!(
            found[0].starts_with("releases/values.yaml:3:11: apps.a: \"repo\":"),
            "{found:?}"
        );
        assert!(!found[0].contains("pw"), "{found:?}");
    }
}
