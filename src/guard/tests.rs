use serde_json::{Value, json};

use super::*;

const REPO: &str = "https://github.com/example/PlatformDeploy.git";
const NO_STAGE: &str = "apps: {other: {repo: https://github.com/example/Other.git, stages: {prd: {}}}, \
    headlamp: {repo: https://github.com/example/PlatformDeploy.git, path: headlamp, stages: {prd: {}}}}";

#[expect(
    clippy::needless_pass_by_value,
    reason = "every caller makes it in place"
)]
fn application(spec: Value) -> Application {
    named("argocd", "it", &spec)
}

fn named(namespace: &str, name: &str, spec: &Value) -> Application {
    let object = json!({"metadata": {"name": name, "namespace": namespace}, "spec": spec});
    Application::read(&object.to_string()).unwrap()
}

/// An Application with one source of the monorepo, with these parameters.
fn source(path: &str, parameters: &[(&str, &str)]) -> Application {
    application(
        json!({"source": {"repoURL": REPO, "path": path, "targetRevision": "main",
        "helm": {"parameters": parameters_of(parameters)}}}),
    )
}

fn parameters_of(parameters: &[(&str, &str)]) -> Value {
    let parameter = |(name, value): &(&str, &str)| json!({"name": name, "value": value});
    parameters.iter().map(parameter).collect()
}

/// Everything that a judgement takes; every folder was looked into, and is as `looked` says, else empty.
struct Case {
    target: Target,
    registry: String,
    instances: Vec<Vec<Application>>,
    looked: BTreeMap<Look, Looked>,
    not_deploying: Vec<ApplicationName>,
    asker: Asker,
    layout: Layout,
}

impl Case {
    fn new(target: &str, applications: Vec<Application>) -> Case {
        Case {
            target: target.parse().unwrap(),
            registry: NO_STAGE.to_owned(),
            instances: vec![applications],
            looked: BTreeMap::new(),
            not_deploying: Vec::new(),
            asker: Asker::Person,
            layout: Layout::default(),
        }
    }

    fn judge(&self) -> Result<Cleared, Refusal> {
        let base: RepoUrl = "https://github.com/example".parse().unwrap();
        let addresses = [base.join(&self.target.repo)];
        let instances: Vec<Instance> = self
            .instances
            .iter()
            .enumerate()
            .map(|(at, applications)| Instance {
                name: format!("the context c{at}"),
                applications: applications.clone(),
            })
            .collect();
        let repo = addresses[0].full_name();
        let mut question = Question {
            target: &self.target,
            addresses: &addresses,
            repo: &repo,
            registry_place: "ArgoCDDeploy's releases/values.yaml on main",
            layout: &self.layout,
            looked: &BTreeMap::new(),
            not_deploying: &self.not_deploying,
            asker: self.asker,
        };
        let mut looked = self.looked.clone();
        for place in places_to_look(&question, &instances) {
            looked.entry(place).or_insert(Looked::Names(Vec::new()));
        }
        question.looked = &looked;
        let registry = Registry::parse(&self.registry, "releases/values.yaml").unwrap();
        judge(&question, &registry, &instances)
    }

    fn refusal(&self) -> String {
        self.judge().unwrap_err().to_string()
    }

    /// Why the one Application is unproven.
    fn reasons(&self) -> String {
        match self.judge() {
            Err(Refusal::Deployed(found)) if found.matching.is_empty() => {
                found.unproven[0].reasons.join(" and ")
            }
            other => panic!("{other:?}"),
        }
    }
}

fn deploys(target: &str, application: Application) -> bool {
    match Case::new(target, vec![application]).judge() {
        Err(Refusal::Deployed(found)) => !found.matching.is_empty(),
        _ => false,
    }
}

fn clears(target: &str, application: Application) -> bool {
    Case::new(target, vec![application]).judge().is_ok()
}

fn unproven(target: &str, application: Application) -> String {
    Case::new(target, vec![application]).reasons()
}

const DEV: &[(&str, &str)] = &[("hook.stage", "dev"), ("hook.path", "headlamp")];
const TARGET: &str = "PlatformDeploy/headlamp/dev";

#[test]
fn both_findings_stand_in_one_sentence() {
    let mut case = Case::new(
        "FieldnotesDeploy/prd",
        vec![named(
            "argocd-prd",
            "fieldnotes-prd",
            &json!({"source": {"repoURL": "https://github.com/example/FieldnotesDeploy.git", "path": "chart",
                "helm": {"parameters": [{"name": "hook.stage", "value": "prd"}]}}}),
        )],
    );
    case.registry =
        "apps: {fieldnotes: {repo: https://github.com/example/FieldnotesDeploy, stages: {prd: {}}}}"
            .to_owned();
    case.asker = Asker::Build;
    assert_eq!(
        case.refusal(),
        "prd of example/FieldnotesDeploy is still deployed, by the registry entry apps.fieldnotes.stages.prd in \
         ArgoCDDeploy's releases/values.yaml on main and the live Application argocd-prd/fieldnotes-prd. This build cleans up \
         after an undeployed stage: delete its registry entry and prune its Application first."
    );
}

#[test]
fn every_entry_and_every_application_is_named_and_unproven_ones_apart() {
    let mut deleting = source("headlamp/chart", DEV);
    deleting.name = "leaving".to_owned();
    deleting.deleting = true;
    let mut unclear = source("headlamp/chart", &[]);
    unclear.name = "unclear".to_owned();
    let mut case = Case::new(
        TARGET,
        vec![source("headlamp/chart", DEV), deleting, unclear],
    );
    case.registry = format!(
        "apps: {{a: {{repo: {REPO}, path: headlamp, stages: {{dev: {{}}}}}}, \
         b: {{repo: 'git@github.com:EXAMPLE/platformdeploy', path: headlamp, stages: {{dev: , prd: }}}}}}"
    );
    assert_eq!(
        case.refusal(),
        "dev of example/PlatformDeploy/headlamp is still deployed, by the registry entries apps.a.stages.dev and \
         apps.b.stages.dev in ArgoCDDeploy's releases/values.yaml on main and the live Applications argocd/it and \
         argocd/leaving, which is being deleted. This run cleans up after an undeployed stage: delete its registry entry and \
         prune its Application first. Nothing proves that the live Application argocd/unclear deploys something else, since it \
         has no hook.stage and no hook.path and nothing else that tells: prune it, or add --not-deploying argocd/unclear if it \
         has nothing to do with this stage."
    );
}

#[test]
fn what_was_looked_at_is_counted() {
    let mut case = Case::new(
        TARGET,
        vec![source("headlamp/chart", &[("hook.stage", "prd")])],
    );
    case.instances.push(vec![source("headlamp/chart", &[])]);
    let Err(Refusal::Deployed(found)) = case.judge() else {
        panic!();
    };
    let counts = "2 Applications in 2 instances, 0 match, 1 unproven";
    assert_eq!(found.looked_at.to_string(), counts);
    assert!(
        found.unproven[0]
            .found
            .to_string()
            .ends_with(" of the context c1")
    );
    case.not_deploying = vec!["argocd/it".parse().unwrap()];
    let cleared = case.judge().unwrap();
    assert_eq!(
        cleared.looked_at().to_string(),
        "2 Applications in 2 instances, 0 match, 0 unproven, 1 lifted by --not-deploying"
    );
    assert_eq!(cleared.lifted().len(), 1);
    assert_eq!(cleared.target(), &case.target);
}

#[test]
fn a_retired_stage_beside_a_neighbour_and_another_stage_is_cleared() {
    let others = vec![
        source(
            "grafana/chart",
            &[("hook.stage", "dev"), ("hook.path", "grafana")],
        ),
        source(
            "headlamp/chart",
            &[("hook.stage", "prd"), ("hook.path", "headlamp")],
        ),
        source("grafana/chart", &[]),
        application(
            json!({"source": {"repoURL": "https://github.com/example/Other", "path": "headlamp",
            "helm": {"parameters": parameters_of(DEV)}}}),
        ),
    ];
    let cleared = Case::new(TARGET, others).judge().unwrap();
    assert_eq!(
        cleared.looked_at().to_string(),
        "4 Applications in 1 instance, 0 match, 0 unproven"
    );
}

#[test]
fn a1_every_source_counts_and_parameters_of_any_source_count_together() {
    let chart = json!({"repoURL": "https://charts.example.org", "chart": "c",
        "helm": {"parameters": parameters_of(&[("hook.stage", "dev")])}});
    let ours = json!({"repoURL": REPO, "ref": "values",
        "helm": {"parameters": parameters_of(&[("hook.path", "headlamp")])}});
    let other = json!({"repoURL": "https://github.com/example/Other", "path": "x"});
    assert!(deploys(
        TARGET,
        application(json!({"sources": [chart, ours]}))
    ));
    assert!(deploys(
        TARGET,
        application(json!({"source": other, "sources": [chart, ours]}))
    ));
    assert!(deploys(
        TARGET,
        application(json!({"source": ours, "sources": [chart]}))
    ));
    let dry = json!({"repoURL": REPO, "path": "headlamp/chart", "helm": {"parameters": parameters_of(DEV)}});
    assert!(deploys(
        TARGET,
        application(json!({"sourceHydrator": {"drySource": dry}}))
    ));
    let by_hook = parameters_of(&[DEV, &[("hook.repo", REPO)]].concat());
    let by_hook = json!({"source": {"repoURL": "https://charts.example.org", "chart": "c", "helm": {"parameters": by_hook}}});
    assert!(deploys(TARGET, application(by_hook)));
}

#[test]
fn a2_value_files_of_the_stage_block_by_whatever_way_they_are_named() {
    let with = |files: Value, path: Value| {
        application(json!({"sources": [
            {"repoURL": "https://charts.example.org", "chart": "c", "helm": {"valueFiles": files}},
            {"repoURL": REPO, "ref": "values", "path": path},
        ]}))
    };
    let reasons = unproven(
        TARGET,
        with(
            json!(["$values/headlamp/config/dev/values.yaml"]),
            Value::Null,
        ),
    );
    assert_eq!(
        reasons,
        "it takes values from headlamp/config/dev/values.yaml"
    );
    let reasons = unproven(
        TARGET,
        with(
            json!(["$values/./x/..//headlamp/config/dev/a/b.yaml"]),
            Value::Null,
        ),
    );
    assert_eq!(reasons, "it takes values from headlamp/config/dev/a/b.yaml");
    let reasons = unproven(
        TARGET,
        with(
            json!(["$values/headlamp/config/$ARGOCD_APP_NAME/values.yaml"]),
            Value::Null,
        ),
    );
    assert!(reasons.contains("not clear where"), "{reasons}");
    assert!(
        unproven(TARGET, with(json!(["$other/x.yaml"]), Value::Null)).contains("not clear where")
    );
    assert!(
        unproven(
            TARGET,
            with(json!(["$values/headlamp/config/*/v.yaml"]), Value::Null)
        )
        .contains("not clear where")
    );
    let raw = "https://raw.githubusercontent.com/example/PlatformDeploy/main/headlamp/config/dev/values.yaml";
    assert!(unproven(TARGET, with(json!([raw]), Value::Null)).contains("not clear where"));
    // Of a file of the chart itself, nothing is known here.
    assert!(
        unproven(TARGET, with(json!(["values-dev.yaml"]), Value::Null))
            .contains("nothing else that tells")
    );
    assert!(clears(
        TARGET,
        with(
            json!(["$values/headlamp/config/prd/values.yaml"]),
            Value::Null
        )
    ));
    assert!(clears(
        TARGET,
        with(
            json!(["$values/grafana/config/dev/values.yaml"]),
            Value::Null
        )
    ));
    // A folder that is no stage's may be shared.
    let shared = with(
        json!(["$values/headlamp/config/common/values.yaml"]),
        Value::Null,
    );
    assert!(unproven(TARGET, shared).contains("nothing else that tells"));
    // One of another stage and one that may be of any.
    let both = json!([
        "$values/headlamp/config/prd/values.yaml",
        "$values/headlamp/config/common.yaml"
    ]);
    assert!(unproven(TARGET, with(both, Value::Null)).contains("nothing else that tells"));
}

#[test]
fn a2_what_lies_in_the_stages_configuration_blocks_whatever_the_hook_is_told() {
    let relative = json!({"source": {"repoURL": REPO, "path": "headlamp/chart", "helm": {
        "valueFiles": ["../config/dev/values.yaml"],
        "parameters": parameters_of(&[("hook.stage", "prd"), ("hook.path", "headlamp")])}}});
    assert_eq!(
        unproven(TARGET, application(relative)),
        "it takes values from headlamp/config/dev/values.yaml"
    );
    let directly = source("headlamp/config/dev/extra", &[("hook.stage", "prd")]);
    assert_eq!(
        unproven(TARGET, directly),
        "it is rendered from headlamp/config/dev/extra/"
    );
    let set_file = json!({"source": {"repoURL": REPO, "path": "grafana/chart", "helm": {
        "fileParameters": [{"name": "motd", "path": "../../headlamp/config/dev/motd"}]}}});
    assert_eq!(
        unproven(TARGET, application(set_file)),
        "it takes values from headlamp/config/dev/motd"
    );
    // A root's configuration lies elsewhere, and a name that only begins alike is another stage.
    assert!(clears(TARGET, source("config/dev", &[])));
    assert!(clears(
        "PlatformDeploy/headlamp/de",
        source(
            "headlamp/config/dev/x",
            &[("hook.stage", "dev"), ("hook.path", "headlamp")]
        )
    ));
}

#[test]
fn a2_another_layout_has_its_configuration_elsewhere() {
    let mut case = Case::new(TARGET, Vec::new());
    case.layout = Layout::from_json(
        r#"{"config": "infra/{path}/stages/for-{stage}", "hook_parameters": {"stage": "presync.environment", "path": "presync.directory"}}"#,
    )
    .unwrap();
    let with = |file: &str| {
        application(json!({"sources": [{"repoURL": REPO, "ref": "v"},
            {"repoURL": "https://c.example.org", "chart": "c", "helm": {"valueFiles": [file]}}]}))
    };
    case.instances = vec![vec![with("$v/infra/headlamp/stages/for-dev/x.yaml")]];
    assert!(
        case.reasons()
            .contains("infra/headlamp/stages/for-dev/x.yaml")
    );
    case.instances = vec![vec![with("$v/infra/headlamp/stages/for-prd/x.yaml")]];
    assert!(case.judge().is_ok());
    case.instances = vec![vec![source(
        "infra/headlamp/chart",
        &[
            ("presync.environment", "dev"),
            ("presync.directory", "headlamp"),
        ],
    )]];
    assert!(case.refusal().contains("is still deployed"));
    // The default's names mean nothing there.
    case.instances = vec![vec![source(
        "infra/headlamp/chart",
        &[("hook.stage", "prd")],
    )]];
    assert!(
        case.reasons()
            .contains("it has no presync.environment and no presync.directory")
    );
}

#[test]
fn a4_a5_a7_an_address_in_another_form_is_the_same_repository() {
    for url in [
        "https://github.com/example/PlatformDeploy/",
        "HTTPS://GITHUB.COM/EXAMPLE/PLATFORMDEPLOY.GIT",
        "ssh://org-123@github.com/example/PlatformDeploy",
        "git@github.com:example/platformdeploy.git",
        "https://user:secret@github.com/example/PlatformDeploy",
    ] {
        let it = json!({"source": {"repoURL": url, "path": "headlamp/chart", "helm": {"parameters": parameters_of(DEV)}}});
        assert!(deploys(TARGET, application(it)), "{url}");
    }
}

#[test]
fn a5_an_address_that_is_not_understood_or_has_the_same_name_elsewhere_is_unproven() {
    for url in [
        "github.com/example/PlatformDeploy",
        "https://github.com/example/x/../Platform%44eploy.git",
        "https://mirror.example.org/PlatformDeploy.git",
    ] {
        let it = json!({"source": {"repoURL": url, "path": "headlamp/chart", "helm": {"parameters": parameters_of(DEV)}}});
        assert_eq!(
            unproven(TARGET, application(it)),
            "it deploys this stage from a repository that may be another one of the name PlatformDeploy, whose states lie at the same place",
            "{url}"
        );
        let other = json!({"source": {"repoURL": url, "path": "headlamp/chart",
            "helm": {"parameters": parameters_of(&[("hook.stage", "prd")])}}});
        assert!(clears(TARGET, application(other)), "{url}");
    }
}

#[test]
fn a8_an_application_of_any_namespace_and_of_any_instance_counts() {
    let parameters = parameters_of(DEV);
    let spec = json!({"source": {"repoURL": REPO, "path": "headlamp/chart", "helm": {"parameters": parameters}}});
    let mut case = Case::new(TARGET, vec![named("argocd", "it", &json!({}))]);
    case.instances.push(vec![named("team-a", "it", &spec)]);
    assert!(
        case.refusal()
            .contains("the live Application team-a/it of the context c1.")
    );
}

#[test]
fn a10_a13_an_application_in_deletion_is_live() {
    let mut it = source("headlamp/chart", DEV);
    it.deleting = true;
    let refusal = Case::new(TARGET, vec![it]).refusal();
    assert!(
        refusal.contains("argocd/it, which is being deleted."),
        "{refusal}"
    );
}

#[test]
fn a11_a_stage_is_found_in_each_place_where_it_can_be_named() {
    for helm in [
        json!({"parameters": parameters_of(DEV)}),
        json!({"valuesObject": {"hook": {"stage": "dev", "path": "headlamp"}}}),
        json!({"values": "hook:\n  stage: dev\n  path: headlamp\n"}),
        json!({"values": "hook: {path: headlamp}", "parameters": parameters_of(&[("hook.stage", "dev")])}),
        // The strongest place decides, and is refused by proof.
        json!({"values": "hook: {stage: prd}", "parameters": parameters_of(DEV)}),
    ] {
        let it = json!({"source": {"repoURL": REPO, "path": "headlamp/chart", "helm": helm}});
        assert!(deploys(TARGET, application(it)), "{helm}");
    }
}

#[test]
fn a11_places_that_disagree_or_cannot_be_read_clear_nothing() {
    let prd = parameters_of(&[("hook.stage", "prd"), ("hook.path", "headlamp")]);
    for (helm, reason) in [
        (
            json!({"parameters": prd, "values": "hook: {stage: dev}"}),
            "its hook.stage is dev and prd at once",
        ),
        (
            json!({"parameters": prd, "valuesObject": {"hook": {"stage": "dev"}}}),
            "its hook.stage is dev and prd at once",
        ),
        (
            json!({"parameters": prd, "valuesObject": {"hook": {"path": "grafana"}}}),
            "its hook.path is grafana and headlamp at once",
        ),
        (
            json!({"parameters": parameters_of(&[("hook.stage", "prd"), ("hook.stage", "test")])}),
            "its hook.stage is prd and test at once",
        ),
        (
            json!({"parameters": prd, "values": "a: [\n"}),
            "its values could not be read: 2:1: ",
        ),
        (
            json!({"parameters": prd, "values": "hook: {stage: on}\n"}),
            "its hook.stage in values is no text",
        ),
        (
            json!({"valuesObject": {"hook": {"stage": ["prd"]}}}),
            "its hook.stage in valuesObject is no text",
        ),
        (
            json!({"valuesObject": {"hook": "prd"}}),
            "its hook.path in valuesObject is no text",
        ),
        (
            json!({"parameters": parameters_of(&[("hook.stage", "$ARGOCD_APP_NAME")])}),
            "its hook.stage is $ARGOCD_APP_NAME, which Argo CD fills in",
        ),
        (
            json!({"parameters": parameters_of(&[("hook", "x")])}),
            "its parameter hook stands in the place of hook.path",
        ),
        (
            json!({"fileParameters": [{"name": "hook.stage", "path": "stage.txt"}]}),
            "its hook.stage is taken from the file stage.txt",
        ),
    ] {
        let it = json!({"source": {"repoURL": REPO, "path": "headlamp/chart", "helm": helm}});
        let reasons = unproven(TARGET, application(it));
        assert!(reasons.contains(reason), "{reason}: {reasons}");
    }
}

#[test]
fn a11_a_stage_that_only_a_value_file_could_name_is_unproven() {
    let it = json!({"source": {"repoURL": REPO, "path": "headlamp/chart", "helm": {"valueFiles": ["values-dev.yaml"]}}});
    assert_eq!(
        unproven(TARGET, application(it)),
        "it has no hook.stage and no hook.path and nothing else that tells"
    );
}

#[test]
fn a16_another_revision_clears_nothing() {
    for revision in [
        "next",
        "v1.2.3",
        "HEAD",
        "",
        "0123456789012345678901234567890123456789",
        "1.*",
    ] {
        let it = json!({"source": {"repoURL": REPO, "path": "headlamp/chart", "targetRevision": revision,
            "helm": {"parameters": parameters_of(DEV)}}});
        assert!(deploys(TARGET, application(it)), "{revision}");
    }
}

#[test]
fn without_a_path_only_the_root_is_meant() {
    let of_root = || source("chart", &[("hook.stage", "dev")]);
    assert!(deploys("PlatformDeploy/dev", of_root()));
    assert!(deploys(
        "PlatformDeploy/dev",
        source("chart", &[("hook.stage", "dev"), ("hook.path", "")])
    ));
    assert!(clears(TARGET, of_root()));
    assert!(clears("PlatformDeploy/dev", source("headlamp/chart", DEV)));
    // Here the missing path is more likely to have been forgotten.
    let forgotten = source("headlamp/chart", &[("hook.stage", "dev")]);
    assert_eq!(
        unproven(TARGET, forgotten),
        "it has no hook.path and nothing else that tells"
    );
    // Of a chart that comes from elsewhere, nothing lies in the app's folder.
    let elsewhere = json!({"source": {"repoURL": "https://charts.example.org", "chart": "c",
        "helm": {"parameters": parameters_of(&[("hook.stage", "dev"), ("hook.repo", REPO)])}}});
    assert!(clears(TARGET, application(elsewhere.clone())));
    assert!(deploys("PlatformDeploy/dev", application(elsewhere)));
}

#[test]
fn a_path_is_compared_whole_and_in_whatever_form_it_is_written() {
    for path in [
        "headlamp",
        "./headlamp",
        "headlamp/",
        "/headlamp",
        "x/../headlamp",
    ] {
        let it = source(
            "headlamp/chart",
            &[("hook.stage", "dev"), ("hook.path", path)],
        );
        assert!(deploys(TARGET, it), "{path}");
    }
    for (target, path) in [
        ("PlatformDeploy/a/dev", "a/b"),
        ("PlatformDeploy/a/b/dev", "a"),
        ("PlatformDeploy/a/dev", "ab"),
        ("PlatformDeploy/ab/dev", "a"),
        ("PlatformDeploy/a/dev", "A"),
    ] {
        let it = source(
            &format!("{path}/chart"),
            &[("hook.stage", "dev"), ("hook.path", path)],
        );
        assert!(clears(target, it), "{target} {path}");
    }
}

#[test]
fn a_source_outside_of_the_apps_folder_clears_and_one_above_it_does_not() {
    assert!(clears(TARGET, source("grafana/chart", &[])));
    assert!(clears("PlatformDeploy/a/b/dev", source("a/chart", &[])));
    for (target, path) in [
        (TARGET, ""),
        (TARGET, "."),
        (TARGET, "headlamp"),
        (TARGET, "./grafana/../headlamp/chart"),
        ("PlatformDeploy/a/dev", "a/b/chart"),
        ("PlatformDeploy/a/b/dev", "a"),
        ("PlatformDeploy/dev", "grafana/chart"),
    ] {
        let reasons = unproven(target, source(path, &[]));
        assert!(
            reasons.contains("nothing else that tells"),
            "{target} {path}: {reasons}"
        );
    }
    let reasons = unproven(TARGET, source("../headlamp", &[]));
    assert!(reasons.contains("leads out of the repository"), "{reasons}");
    // One source outside does not speak for another one.
    let both = json!({"sources": [{"repoURL": REPO, "path": "grafana/chart"}, {"repoURL": REPO, "path": "headlamp/chart"}]});
    assert!(unproven(TARGET, application(both)).contains("nothing else that tells"));
}

#[test]
fn what_contradicts_itself_is_unproven() {
    let path_and_place = source("grafana/chart", &[("hook.path", "headlamp")]);
    assert_eq!(
        unproven(TARGET, path_and_place),
        "it has no hook.stage and nothing else that tells"
    );
    let stage_and_files = json!({"source": {"repoURL": REPO, "path": "headlamp/chart", "helm": {
        "valueFiles": ["../config/prd/values.yaml"], "parameters": parameters_of(&[("hook.stage", "dev")])}}});
    assert_eq!(
        unproven(TARGET, application(stage_and_files)),
        "it has no hook.path and nothing else that tells"
    );
}

#[test]
fn what_argo_cd_merges_from_the_repository_clears_nothing() {
    let it = source(
        "headlamp/chart",
        &[("hook.stage", "prd"), ("hook.path", "headlamp")],
    );
    let look = Look {
        revision: "main".to_owned(),
        folder: "headlamp/chart".to_owned(),
    };
    let mut case = Case::new(TARGET, vec![it]);
    for name in [
        ".argocd-source.yaml",
        ".argocd-source-it.yaml",
        ".argocd-source-argocd_it.yaml",
    ] {
        let names = vec!["Chart.yaml".to_owned(), name.to_owned()];
        case.looked.insert(look.clone(), Looked::Names(names));
        assert_eq!(
            case.reasons(),
            format!("its folder headlamp/chart has {name} at main")
        );
    }
    let others = [
        ".argocd-source-other.yaml",
        ".argocd-sources.yaml",
        "argocd-source.yaml",
    ];
    case.looked.insert(
        look.clone(),
        Looked::Names(others.map(str::to_owned).to_vec()),
    );
    assert!(case.judge().is_ok());
    case.looked
        .insert(look, Looked::Unknown("no branch is called that".to_owned()));
    assert_eq!(
        case.reasons(),
        "its folder headlamp/chart could not be looked into at main: no branch is called that"
    );
}

#[test]
fn a_folder_that_nobody_looked_into_clears_nothing() {
    let target: Target = TARGET.parse().unwrap();
    let it = source("headlamp/chart", &[("hook.stage", "prd")]);
    let question = Question {
        target: &target,
        addresses: &[REPO.parse().unwrap()],
        repo: "example/PlatformDeploy",
        registry_place: "x",
        layout: &Layout::default(),
        looked: &BTreeMap::new(),
        not_deploying: &[],
        asker: Asker::Person,
    };
    let registry = Registry::parse(NO_STAGE, "x").unwrap();
    let instances = [Instance {
        name: "c".to_owned(),
        applications: vec![it],
    }];
    assert!(matches!(
        judge(&question, &registry, &instances),
        Err(Refusal::Deployed(_))
    ));
}

#[test]
fn a_lift_is_for_an_unproven_application_alone() {
    let lift = |applications: Vec<Application>, name: &str| {
        let mut case = Case::new(TARGET, applications);
        case.not_deploying = vec![name.parse().unwrap()];
        case.judge()
    };
    assert!(lift(vec![source("headlamp/chart", &[])], "argocd/it").is_ok());
    let proven = lift(vec![source("headlamp/chart", DEV)], "argocd/it").unwrap_err();
    assert!(
        proven.to_string().ends_with(
            "--not-deploying lifts an unproven Application alone, and argocd/it is none."
        ),
        "{proven}"
    );
    let other = source("grafana/chart", &[]);
    assert_eq!(
        lift(vec![other.clone()], "argocd/it")
            .unwrap_err()
            .to_string(),
        "--not-deploying argocd/it is not needed, since that Application deploys something else: leave it out"
    );
    assert_eq!(
        lift(vec![other], "argocd/lt").unwrap_err().to_string(),
        "--not-deploying argocd/lt names no live Application: mend the name, or leave it out; names near it: argocd/it"
    );
    assert!(lift(vec![source("headlamp/chart", &[])], "argocd/lt").is_err());
}

#[test]
fn y20_a_fault_that_hides_a_repository_a_path_or_a_stage_ends_the_judgement() {
    let judge = |registry: &str| {
        let mut case = Case::new(TARGET, vec![source("grafana/chart", &[])]);
        case.registry = registry.to_owned();
        case.judge()
    };
    for entry in [
        "{path: headlamp, stages: {dev: {}}}",
        "{repo: not-a-url, stages: {dev: {}}}",
        "{repo: 'https://h/o/r', path: /headlamp, stages: {dev: {}}}",
        "{repo: 'https://h/o/r', path: , stages: {dev: {}}}",
        "{repo: 'https://h/o/r', paht: headlamp, stages: {dev: {}}}",
        "{repo: 'https://h/o/r'}",
        "{repo: 'https://h/o/r', stages: }",
        "{repo: 'https://h/o/r', stages: [dev]}",
        "{repo: 'https://h/o/r', stages: {on: {}}}",
        "{repo: 'https://h/o/r', stages: {DEV: {}}}",
        "[]",
        "",
    ] {
        let refusal = judge(&format!("apps: {{x: {entry}}}")).unwrap_err();
        assert!(
            matches!(refusal, Refusal::Hidden { .. }),
            "{entry}: {refusal}"
        );
        let text = refusal.to_string();
        assert!(
            text.starts_with(
                "ArgoCDDeploy's releases/values.yaml on main does not tell everything"
            ),
            "{text}"
        );
        assert!(text.contains("releases/values.yaml:1:"), "{text}");
    }
    for entry in [
        "{repo: 'https://h/o/r', stages: {}}",
        "{repo: 'https://h/o/r', syncOptions: x, stages: {dev: {}}}",
        "{repo: 'https://h/o/r', path: x, color: blue, stages: {dev: {}}}",
        "{repo: 'https://h/o/r', stages: {dev: {autoSync: maybe}}}",
    ] {
        assert!(judge(&format!("apps: {{x: {entry}}}")).is_ok(), "{entry}");
    }
}

#[test]
fn an_entry_with_a_fault_that_hides_nothing_deploys_all_the_same() {
    for fault in [
        "syncOptions: x",
        "upstream: y",
        "upstream: {repo: a, chart: b}",
    ] {
        let mut case = Case::new(TARGET, vec![source("grafana/chart", &[])]);
        case.registry = format!(
            "apps: {{x: {{repo: {REPO}, path: headlamp, {fault}, stages: {{dev: 1, prd: }}}}}}"
        );
        assert!(
            case.refusal()
                .contains("by the registry entry apps.x.stages.dev in"),
            "{fault}"
        );
    }
}

#[test]
fn an_entry_is_found_by_repository_path_and_stage_alone() {
    let judge = |entry: &str| {
        let mut case = Case::new(TARGET, vec![source("grafana/chart", &[])]);
        case.registry = format!("apps: {{x: {entry}}}");
        case.judge()
    };
    for entry in [
        "{repo: 'https://github.com/example/Other', path: headlamp, stages: {dev: {}}}",
        "{repo: 'https://github.com/example/PlatformDeploy', stages: {dev: {}}}",
        "{repo: 'https://github.com/example/PlatformDeploy', path: Headlamp, stages: {dev: {}}}",
        "{repo: 'https://github.com/example/PlatformDeploy', path: headlamp/dev, stages: {dev: {}}}",
        "{repo: 'https://github.com/example/PlatformDeploy', path: headlamp, stages: {prd: {}}}",
    ] {
        assert!(judge(entry).is_ok(), "{entry}");
    }
    let elsewhere =
        "{repo: 'https://mirror.example.org/platformdeploy', path: headlamp, stages: {dev: {}}}";
    let text = judge(elsewhere).unwrap_err().to_string();
    assert!(
        text.contains("apps.x.stages.dev (of https://mirror.example.org/platformdeploy, whose states lie at the same place) in"),
        "{text}"
    );
}

#[test]
fn values_that_cannot_be_read_matter_where_they_could_name_the_repository() {
    let of_chart = |values: &str| {
        application(
            json!({"source": {"repoURL": "https://charts.example.org", "chart": "c", "helm": {"values": values}}}),
        )
    };
    assert!(clears(TARGET, of_chart("a: [\n$x")));
    assert!(
        unproven(TARGET, of_chart("a: [\nhook.repo: PLATFORMdeploy")).contains("could not be read")
    );
    let by_variable = |variable: &str| {
        application(
            json!({"source": {"repoURL": "https://charts.example.org", "chart": "c",
            "helm": {"parameters": parameters_of(&[DEV, &[("hook.repo", variable)]].concat())}}}),
        )
    };
    assert!(clears(TARGET, by_variable("$ARGOCD_APP_SOURCE_REPO_URL")));
    let reasons = unproven(
        TARGET,
        by_variable("https://github.com/example/$ARGOCD_APP_NAME"),
    );
    assert!(
        reasons.contains("may be another one of the name"),
        "{reasons}"
    );
}

/// An Application of a chart that is no repository's of ours.
fn elsewhere(others: &Value) -> Application {
    let mut source = json!({"repoURL": "https://github.com/example/Charts.git", "path": "hook"});
    let members = others.as_object().unwrap().clone();
    source.as_object_mut().unwrap().extend(members);
    application(json!({ "source": source }))
}

#[test]
fn what_names_the_repository_to_another_tool_than_helm_or_by_a_files_address_is_unproven() {
    let address = "https://github.com/example/PlatformDeploy";
    for (others, cleared) in [
        (
            json!({"plugin": {"env": [{"name": "HELM_ARGS", "value": format!("--set hook.repo={address}.git")}]}}),
            false,
        ),
        (
            json!({"plugin": {"parameters": [{"name": "p", "map": {"hook.repo": address}}]}}),
            false,
        ),
        (
            json!({"kustomize": {"components": [format!("{address}//headlamp/config/dev")]}}),
            false,
        ),
        (
            json!({"directory": {"jsonnet": {"extVars": [{"name": "repo", "value": address}]}}}),
            false,
        ),
        (
            json!({"helm": {"valueFiles": [format!("{address}/raw/main/headlamp/config/dev/values.yaml")]}}),
            false,
        ),
        (
            json!({"plugin": {"env": [{"name": "X", "value": "PlatformDeployment"}]}}),
            true,
        ),
        (json!({"kustomize": {"namePrefix": "x-"}}), true),
    ] {
        let judged = Case::new("PlatformDeploy/headlamp/dev", vec![elsewhere(&others)]).judge();
        assert_eq!(judged.is_ok(), cleared, "{others}: {judged:?}");
    }
}

#[test]
fn a_plugin_in_the_apps_folder_is_not_cleared_by_parameters_for_helm() {
    let with_plugin = |path: &str| {
        application(
            json!({"source": {"repoURL": REPO, "path": path, "plugin": {"name": "p"}, "helm":
            {"parameters": parameters_of(&[("hook.stage", "prd"), ("hook.path", "headlamp")])}}}),
        )
    };
    let judge = |path| Case::new("PlatformDeploy/headlamp/dev", vec![with_plugin(path)]).judge();
    assert!(judge("headlamp/chart").is_err());
    assert!(judge("grafana/chart").is_ok());
}

#[test]
fn a_parameter_that_helm_reads_otherwise_than_it_is_written_proves_nothing() {
    for parameters in [
        [("hook.path", "headlamp"), ("hook.stage", r"d\ev")],
        [("hook.path", "headlamp"), ("hook.stage", "{{ .Values.s }}")],
        [("hook.stage", "prd"), ("a=1,hook.stage", "dev")],
        [("hook.stage", "prd"), (r"hoo\k.stage", "dev")],
    ] {
        let application = source("headlamp/chart", &parameters);
        let judged = Case::new("PlatformDeploy/headlamp/dev", vec![application]).judge();
        assert!(judged.is_err(), "{parameters:?}: {judged:?}");
    }
    let usual = source(
        "headlamp/chart",
        &[
            ("hook.path", "headlamp"),
            ("hook.stage", "prd"),
            (r"nodeSelector.kubernetes\.io/os", "linux"),
        ],
    );
    assert!(
        Case::new("PlatformDeploy/headlamp/dev", vec![usual])
            .judge()
            .is_ok()
    );
    let named = |repo: &str| {
        elsewhere(
            &json!({"helm": {"parameters": parameters_of(&[("hook.repo", repo), ("hook.stage", "dev"), ("hook.path", "headlamp")])}}),
        )
    };
    for repo in [
        r"https://github.com/example/Platform\Deploy",
        "https://github.com/example/{{ .Values.repo }}",
    ] {
        let judged = Case::new("PlatformDeploy/headlamp/dev", vec![named(repo)]).judge();
        assert!(judged.is_err(), "{repo}");
    }
}

#[test]
fn what_a_chart_hands_to_one_that_it_takes_in_counts_as_well() {
    let hook = json!({"hook": {"repo": REPO, "stage": "dev", "path": "headlamp"}});
    for helm in [
        json!({"valuesObject": {"global": hook}}),
        json!({"valuesObject": {"a": {"b": hook}}}),
        json!({"values": format!("hooks:\n  hook:\n    repo: {REPO}\n    stage: dev\n    path: headlamp\n")}),
    ] {
        let spec = json!({"source": {"repoURL": "https://charts.example.org", "chart": "hooks", "helm": helm}});
        let refused = Case::new(TARGET, vec![application(spec)]).refusal();
        assert!(refused.contains("argocd/it"), "{helm}: {refused}");
    }
}
