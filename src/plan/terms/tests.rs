use super::*;

const REGISTRY: &str = "\
apps:
  fieldnotes:
    repo: https://forge.example/example/FieldnotesDeploy.git
    stages:
      dev: {targetRevision: next}
      pinned: {targetRevision: 0123456789abcdef0123456789abcdef01234567}
      prd: {}
  headlamp:
    repo: https://forge.example/example/PlatformDeploy.git
    path: headlamp
    stages:
      prd: {}
  twin:
    repo: https://forge.example/example/PlatformDeploy
    path: headlamp
    stages:
      dev: {}
  twin-again:
    repo: git@forge.example:example/PlatformDeploy.git
    path: headlamp
    stages:
      dev: {}
  zeta:
    stages: {prd: {}}
  zulu:
    repo: https://forge.example/example/ZuluDeploy.git
    stages:
      dev: {autoSync: maybe}
      prd: {}
";

fn draw_for(
    repo: &str,
    path: Option<&str>,
    stage: &str,
    given: Given,
) -> Result<Terms, TermsError> {
    let registry = Registry::parse(REGISTRY, "releases/values.yaml").unwrap();
    let known: RepoUrl = format!("https://forge.example/example/{repo}")
        .parse()
        .unwrap();
    let target = Target {
        repo: repo.parse().unwrap(),
        path: path.map(|p| p.parse().unwrap()),
        stage: stage.parse().unwrap(),
    };
    draw(&registry, &known, &target, given, &Layout::default())
}

#[test]
fn a_registered_stage_is_planned_in_its_namespace_from_the_branch_that_it_tracks() {
    let terms = draw_for("FieldnotesDeploy", None, "dev", Given::default()).unwrap();
    assert_eq!(terms.namespace.as_str(), "fieldnotes-dev");
    assert_eq!(terms.tracked, Tracked::Branch("next".parse().unwrap()));
    assert_eq!(
        terms.tracked_from,
        "the targetRevision of apps.fieldnotes.stages.dev"
    );
    let terms = draw_for("PlatformDeploy", Some("headlamp"), "prd", Given::default()).unwrap();
    assert_eq!(terms.namespace.as_str(), "headlamp-prd");
    assert_eq!(terms.tracked, Tracked::Branch("main".parse().unwrap()));
}

#[test]
fn a_stage_that_the_registry_pins_to_a_commit_is_planned_there() {
    let terms = draw_for("FieldnotesDeploy", None, "pinned", Given::default()).unwrap();
    let pinned = "0123456789abcdef0123456789abcdef01234567".parse().unwrap();
    assert_eq!(terms.tracked, Tracked::Commit(pinned));
}

#[test]
fn a_path_that_is_not_registered_needs_a_namespace_even_where_the_repository_is() {
    let error = draw_for("PlatformDeploy", None, "prd", Given::default()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with(
            "PlatformDeploy/prd is not in the registry, so its namespace is not known: name a stage that it has \
             (PlatformDeploy/headlamp/prd, PlatformDeploy/headlamp/dev, PlatformDeploy/headlamp/dev), or give --namespace"
        ),
        "{text}"
    );
    assert!(
        text.contains("releases/values.yaml:23"),
        "the faulty entry may be the one: {text}"
    );
    let given = Given {
        namespace: Some("try".parse().unwrap()),
        branch: None,
    };
    let terms = draw_for("PlatformDeploy", None, "prd", given).unwrap();
    assert_eq!(terms.namespace.as_str(), "try");
}

#[test]
fn a_repository_that_the_registry_spells_in_another_case_is_refused() {
    let error = draw_for("fieldnotesdeploy", None, "prd", Given::default()).unwrap_err();
    assert!(
        matches!(&error, TermsError::OtherSpelling { .. }),
        "{error}"
    );
    assert!(
        error.to_string().contains("mend repo in the registry"),
        "{error}"
    );
}

#[test]
fn a_stage_whose_own_entry_is_faulty_is_refused_and_its_neighbour_is_not() {
    let error = draw_for("ZuluDeploy", None, "dev", Given::default()).unwrap_err();
    assert!(
        error.to_string().starts_with(
            "the registry's entry of ZuluDeploy/dev is faulty: releases/values.yaml:28"
        ),
        "{error}"
    );
    assert!(draw_for("ZuluDeploy", None, "prd", Given::default()).is_ok());
}

#[test]
fn another_apps_faulty_entry_is_a_warning() {
    let terms = draw_for("FieldnotesDeploy", None, "prd", Given::default()).unwrap();
    assert_eq!(terms.warnings.len(), 2);
    assert!(
        terms.warnings[0].starts_with("releases/values.yaml:23"),
        "{:?}",
        terms.warnings
    );
}

#[test]
fn a_stage_that_two_entries_deploy_needs_both_terms() {
    let error = draw_for("PlatformDeploy", Some("headlamp"), "dev", Given::default()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("apps.twin.stages.dev and apps.twin-again.stages.dev")
    );
    let given = Given {
        namespace: Some("twin-dev".parse().unwrap()),
        branch: Some("main".parse().unwrap()),
    };
    assert!(draw_for("PlatformDeploy", Some("headlamp"), "dev", given).is_ok());
}

#[test]
fn a_branch_other_than_the_tracked_one_is_planned_with_a_warning() {
    let given = Given {
        namespace: None,
        branch: Some("trial".parse().unwrap()),
    };
    let terms = draw_for("FieldnotesDeploy", None, "prd", given).unwrap();
    assert_eq!(terms.tracked, Tracked::Branch("trial".parse().unwrap()));
    let last = terms.warnings.last().unwrap();
    assert!(
        last.starts_with("--branch trial is not main, which apps.fieldnotes.stages.prd tracks"),
        "{last}"
    );
}

#[test]
fn a_namespace_other_than_the_registered_one_is_used_with_a_warning() {
    let given = Given {
        namespace: Some("fieldnotes-prod".parse().unwrap()),
        branch: None,
    };
    let terms = draw_for("FieldnotesDeploy", None, "prd", given).unwrap();
    assert!(terms.warnings[0].starts_with("--namespace fieldnotes-prod is not fieldnotes-prd"));
}
