use super::*;

fn repo() -> RepoName {
    "PlatformDeploy".parse().unwrap()
}

fn path() -> AppPath {
    "headlamp".parse().unwrap()
}

fn stage() -> StageName {
    "prd".parse().unwrap()
}

fn error(json: &str) -> String {
    use std::error::Error;
    let error = Layout::from_json(json).unwrap_err();
    error.source().unwrap().to_string()
}

#[test]
fn the_defaults_are_the_paths_of_the_runbook() {
    let layout = Layout::default();
    let path = path();
    assert_eq!(
        layout.terraform_dir(&repo(), Some(&path)),
        "headlamp/terraform"
    );
    assert_eq!(layout.terraform_dir(&repo(), None), "terraform");
    assert_eq!(
        layout.config_dir(&repo(), Some(&path), &stage()),
        "headlamp/config/prd"
    );
    assert_eq!(layout.config_dir(&repo(), None, &stage()), "config/prd");
    assert_eq!(
        layout
            .state_key("argocd", &repo(), Some(&path), &stage())
            .unwrap()
            .as_str(),
        "argocd/PlatformDeploy/headlamp/prd/terraform.tfstate"
    );
    assert_eq!(
        layout
            .state_key("argocd", &repo(), None, &stage())
            .unwrap()
            .as_str(),
        "argocd/PlatformDeploy/prd/terraform.tfstate"
    );
    assert_eq!(
        layout
            .state_key("", &repo(), None, &stage())
            .unwrap()
            .as_str(),
        "PlatformDeploy/prd/terraform.tfstate"
    );
    assert_eq!(
        layout
            .namespace(&"headlamp".parse().unwrap(), &stage())
            .unwrap()
            .as_str(),
        "headlamp-prd"
    );
    assert_eq!(layout.hook_parameters().path, "hook.path");
}

#[test]
fn json_carries_the_whole_layout() {
    let json = Layout::default().to_json();
    assert_eq!(
        json,
        "{\"terraform\":\"{path}/terraform\",\"config\":\"{path}/config/{stage}\",\"tfvars\":\"*.tfvars\",\"state_key\":\"{prefix}/{repo}/{path}/{stage}/terraform.tfstate\",\"application\":\"{app}-{stage}\",\"namespace\":\"{app}-{stage}\",\"hook_parameters\":{\"repo\":\"hook.repo\",\"revision\":\"hook.revision\",\"stage\":\"hook.stage\",\"namespace\":\"hook.namespace\",\"path\":\"hook.path\"}}"
    );
    assert_eq!(Layout::from_json(&json).unwrap(), Layout::default());
    assert_eq!(Layout::from_json("{}").unwrap(), Layout::default());
}

#[test]
fn an_unknown_placeholder_is_named_with_its_key() {
    assert!(error(r#"{"terraform": "{path}/{stage}"}"#).starts_with(
        "the template \"{path}/{stage}\" of layout.terraform has the placeholder \"{stage}\"; known here are {path}, {repo}"
    ));
    assert!(error(r#"{"config": "{path}/config"}"#).contains("layout.config lacks {stage}"));
    assert!(error(r#"{"state_key": "{repo}/{stage}"}"#).contains("layout.state_key lacks {path}"));
    assert!(error(r#"{"application": "{app}"}"#).contains("layout.application lacks {stage}"));
    assert!(error(r#"{"namespace": "{app}-{stage"}"#).contains("has a \"{\" without its \"}\""));
    assert!(error(r#"{"colour": "red"}"#).contains("unknown field `colour`"));
}

#[test]
fn a_template_cannot_leave_the_clone_or_hide() {
    for bad in [
        "",
        "/",
        "/{path}",
        "{path}/",
        "a//b",
        "../{path}",
        "a/../b",
        "./a",
        ".git/x",
        ".{repo}",
        "a b",
        "a\\b",
        "a}b",
        "-x/{path}",
        "a.lock",
        "a.",
    ] {
        assert!(template::TERRAFORM.parse(bad).is_err(), "{bad}");
    }
    for good in [
        "{path}",
        "infra/{path}/tf",
        ".deploy/{path}",
        "x-{repo}/{path}",
    ] {
        assert_eq!(template::TERRAFORM.parse(good).unwrap().to_string(), good);
    }
}

#[test]
fn a_state_key_that_two_stages_could_share_is_refused() {
    for bad in [
        "{repo}-{stage}/{path}",
        "{repo}/{path}-{stage}",
        "{repo}/x{path}/{stage}",
        "x{prefix}/{repo}/{path}/{stage}",
    ] {
        assert!(template::STATE_KEY.parse(bad).is_err(), "{bad}");
    }
    assert!(
        template::STATE_KEY
            .parse("r-{repo}/{path}/{stage}.tfstate")
            .is_ok()
    );
}

#[test]
fn a_name_that_grows_too_long_is_an_error_that_names_the_template() {
    use std::error::Error;
    let app: AppName = "a".repeat(62).parse().unwrap();
    let error = Layout::default().namespace(&app, &stage()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the template \"{app}-{stage}\" of layout.namespace gives no valid name here; change the template or the names"
    );
    assert!(
        error
            .source()
            .unwrap()
            .to_string()
            .contains("its 66 characters")
    );
    let path: AppPath = "a".repeat(200).parse().unwrap();
    assert!(
        Layout::default()
            .state_key("argocd", &repo(), Some(&path), &stage())
            .is_err()
    );
}

#[test]
fn variable_files_are_picked_by_name() {
    let layout = Layout::default();
    assert!(layout.is_tfvars("a.tfvars"));
    assert!(!layout.is_tfvars("a.tfvars.json"));
    assert!(!layout.is_tfvars("tfvars"));
    assert!(!layout.is_tfvars(".tfvars"));
    let other = |glob: &str| Glob::parse(glob).unwrap();
    assert!(other("*.auto.*").matches("x.auto.tfvars"));
    assert!(other("??.tfvars").matches("é1.tfvars"));
    assert!(!other("?.tfvars").matches("ab.tfvars"));
    assert!(other(".*").matches(".x"));
    assert!(other("*a*b*c").matches(&format!("{}bc", "ab".repeat(500))));
    assert!(!other("*a*a*a*a*a*b").matches(&"a".repeat(2000)));
    for bad in ["", "a/*", "[ab]", "{a,b}", "**/x"] {
        assert!(Glob::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn hook_parameters_differ_from_one_another() {
    assert!(
        error(r#"{"hook_parameters": {"repo": "hook.path"}}"#)
            .starts_with("the Helm parameter name \"hook.path\" is given twice")
    );
    assert!(error(r#"{"hook_parameters": {"repo": "a=b"}}"#).contains("\"a=b\""));
}

proptest::proptest! {
    #[test]
    fn whatever_template_is_taken_stays_in_the_clone(
        pieces in proptest::collection::vec(
            proptest::sample::select(vec![
                "{path}", "{repo}", "{stage}", "/", "a", ".", "..", "-", ".git", ".lock", "{", "}", " ", "é",
            ]),
            0..8,
        ),
        with_path in proptest::bool::ANY,
    ) {
        let text = pieces.concat();
        if let Ok(config) = template::CONFIG.parse(&text) {
            let layout = Layout { config, ..Layout::default() };
            let folder = layout.config_dir(&repo(), with_path.then(path).as_ref(), &stage());
            proptest::prop_assert!(!folder.is_empty());
            proptest::prop_assert!(!folder.starts_with('/') && !folder.ends_with('/'));
            proptest::prop_assert!(
                std::path::Path::new(&folder)
                    .components()
                    .all(|component| matches!(component, std::path::Component::Normal(_)))
            );
            proptest::prop_assert_eq!(layout.config.to_string(), text);
        }
    }
}

#[test]
fn the_stage_of_a_configuration_folder_is_told_by_its_path() {
    let layout = Layout::default();
    let of = |layout: &Layout, path: Option<&AppPath>, file: &str| {
        let stage = layout.stage_of_config(&repo(), path, file);
        stage.map(|stage| stage.to_string())
    };
    let path = path();
    for (file, expected) in [
        ("headlamp/config/prd/values.yaml", Some("prd")),
        ("headlamp/config/prd/a/b", Some("prd")),
        ("headlamp/config/prd", Some("prd")),
        ("headlamp/config", None),
        ("headlamp/config/common.yaml", None),
        ("headlamp/chart/config/prd/x", None),
        ("config/prd/values.yaml", None),
        ("headlamp/config/Prd/values.yaml", None),
    ] {
        assert_eq!(
            of(&layout, Some(&path), file).as_deref(),
            expected,
            "{file}"
        );
    }
    assert_eq!(of(&layout, None, "config/dev/x").as_deref(), Some("dev"));
    let other = Layout::from_json(r#"{"config": "{repo}/stages/of-{stage}-here/{path}"}"#).unwrap();
    let file = "PlatformDeploy/stages/of-dev-here/headlamp/values.yaml";
    assert_eq!(of(&other, Some(&path), file).as_deref(), Some("dev"));
}

#[test]
fn the_path_of_a_state_leads_back_to_its_stage() {
    let targets = [
        "PlatformDeploy/prd",
        "PlatformDeploy/headlamp/prd",
        "PlatformDeploy/a/b/c/prd",
        "prd/prd/prd/prd",
        "terraform.tfstate/argocd/prd",
    ];
    for template in [
        "{prefix}/{repo}/{path}/{stage}/terraform.tfstate",
        "{repo}/{path}/{stage}",
        "{stage}/{prefix}/of-{repo}.git/{path}/state",
        "{repo}/{path}/{stage}.tfstate",
        "{path}/{repo}/x/{path}/{stage}",
    ] {
        let layout = Layout::from_json(&format!(r#"{{"state_key": "{template}"}}"#)).unwrap();
        for prefix in ["", "argocd", "a/b"] {
            for target in targets {
                let target: Target = target.parse().unwrap();
                let (repo, path) = (&target.repo, target.path.as_ref());
                let key = layout.state_key(prefix, repo, path, &target.stage).unwrap();
                let found = layout.target_of_state(prefix, &key);
                assert_eq!(found, Some(target), "{key} of {template}");
            }
        }
    }
}

#[test]
fn a_path_that_is_no_states_leads_to_no_stage() {
    let layout = Layout::default();
    for key in [
        "README.md",
        "argocd/PlatformDeploy/terraform.tfstate",
        "argocd/PlatformDeploy/prd/terraform.tfstate.backup",
        "argocd/PlatformDeploy/prd/terraform.tfstate/x",
        "other/PlatformDeploy/prd/terraform.tfstate",
        "argocd/PlatformDeploy/UPPER/terraform.tfstate",
        "argocd",
    ] {
        let found = layout.target_of_state("argocd", &key.parse().unwrap());
        assert_eq!(found, None, "{key}");
    }
}

#[test]
fn a_configuration_folder_leads_back_to_its_stage() {
    let repo: RepoName = "Mono".parse().unwrap();
    let of = |layout: &Layout, folder: &str| {
        let target = layout.target_of_config(&repo, folder);
        target.map(|target| target.to_string())
    };
    let layout = Layout::default();
    assert_eq!(
        of(&layout, "a/b/config/dev").as_deref(),
        Some("Mono/a/b/dev")
    );
    assert_eq!(of(&layout, "config/dev").as_deref(), Some("Mono/dev"));
    assert_eq!(of(&layout, "a/chart/dev"), None);
    assert_eq!(of(&layout, "a/config/dev/more"), None);
    let other = Layout::from_json(r#"{"config": "{repo}/{path}/of-{stage}-now"}"#).unwrap();
    assert_eq!(
        of(&other, "Mono/a/of-dev-now").as_deref(),
        Some("Mono/a/dev")
    );
    assert_eq!(of(&other, "Other/a/of-dev-now"), None);
}
