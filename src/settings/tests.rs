use std::sync::atomic::{AtomicUsize, Ordering};

use std::time::Duration;

use super::*;

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples/settings")
        .join(name)
}

/// Reads the text as a settings file of a folder of its own, and gives the error without that folder.
fn read(text: &str, origin: SettingsOrigin) -> Result<Settings, String> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let folder = std::env::temp_dir().join(format!(
        "settings-{}-{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    ));
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("stagewright.yaml");
    std::fs::write(&file, text).unwrap();
    let settings = Settings::load(&file, origin);
    std::fs::remove_dir_all(&folder).unwrap();
    settings.map_err(|error| {
        error
            .to_string()
            .replace(&format!("{}/", folder.display()), "")
    })
}

fn error(text: &str) -> String {
    read(text, SettingsOrigin::Flag).unwrap_err()
}

const SOUND: &str = "forge: {git: {root: git}}\nregistry: {repo: ArgoCDDeploy}\nstate: {repo: TerraformState}\nrunner: local\n";

#[test]
fn the_sample_for_github_and_kubernetes_has_the_defaults() {
    let settings = Settings::load(
        &sample("github-kubernetes.yaml"),
        SettingsOrigin::WorkingFolder,
    )
    .unwrap();
    assert_eq!(
        settings.forge,
        ForgeSettings::GitHub {
            owner: "example".parse().unwrap(),
            url: "https://github.com".parse().unwrap(),
            api: "https://api.github.com".to_owned(),
            access: GitHubAccess::TokenEnv("GITHUB_TOKEN".to_owned()),
        }
    );
    assert_eq!(settings.registry.repo.as_str(), "ArgoCDDeploy");
    assert_eq!(settings.registry.file, "releases/values.yaml");
    assert_eq!(settings.registry.branch.as_str(), "main");
    assert_eq!(
        settings.state.source,
        StateSource::Repo("TerraformState".parse().unwrap())
    );
    assert_eq!(settings.state.branch.as_str(), "main");
    assert_eq!(settings.state.prefix, "argocd");
    assert_eq!(
        settings.runner,
        RunnerSettings::Kubernetes(Box::new(KubernetesSettings {
            context: None,
            namespace: "argocd-hooks".parse().unwrap(),
            image: "registry.example.org/presync:1".to_owned(),
            pull_policy: None,
            service_account: "tf-plan".to_owned(),
            secret: "argocd-plan-credentials".to_owned(),
            deadline: Duration::from_secs(1800),
            start_deadline: Duration::from_secs(120),
            unreachable: Duration::from_secs(300),
            keep: Duration::from_secs(14_400),
            pod_template: serde_json::Map::new(),
            destroy: DestroyingSettings {
                image: "registry.example.org/presync:1".to_owned(),
                service_account: "tf-presync".to_owned(),
                secret: "argocd-hook-credentials".to_owned(),
            },
        }))
    );
    assert_eq!(settings.terraform.program, None);
    assert!(!settings.plan.allow_unmerged);
    assert!(settings.protect.is_empty());
    assert_eq!(settings.layout, Layout::default());
}

#[test]
fn the_sample_for_plain_git_is_relative_to_its_folder() {
    let file = sample("plain-git.yaml");
    let settings = Settings::load(&file, SettingsOrigin::WorkingFolder).unwrap();
    let folder = file.parent().unwrap().to_str().unwrap().to_owned();
    assert_eq!(
        settings.forge,
        ForgeSettings::Git {
            root: format!("{folder}/git").parse().unwrap(),
            known_as: Some("https://github.com/example".parse().unwrap()),
        }
    );
    assert_eq!(
        settings.runner,
        RunnerSettings::Local {
            sops_age_key_file: Some(PathBuf::from(format!("{folder}/age.key")))
        }
    );
    assert_eq!(settings.file, file);
}

#[test]
fn the_sample_of_another_layout_differs_in_every_key() {
    let file = sample("other-layout.yaml");
    let settings = Settings::load(&file, SettingsOrigin::Flag).unwrap();
    assert_eq!(
        settings.forge,
        ForgeSettings::Git {
            root: "ssh://git@git.example.org:2222/infra".parse().unwrap(),
            known_as: Some("https://code.example.org/infra".parse().unwrap()),
        }
    );
    assert_eq!(settings.registry.repo.as_str(), "Estate");
    assert_eq!(settings.registry.file, "clusters/live/apps.yaml");
    assert_eq!(settings.registry.branch.as_str(), "live");
    assert_eq!(
        settings.state.source,
        StateSource::Url(
            "ssh://git@git.example.org:2222/terraform/states.git"
                .parse()
                .unwrap()
        )
    );
    assert_eq!(settings.state.branch.as_str(), "states");
    assert_eq!(settings.state.prefix, "tf/live");
    assert_eq!(
        settings.runner,
        RunnerSettings::Local {
            sops_age_key_file: Some(file.parent().unwrap().join("keys/live.age")),
        }
    );
    assert_eq!(
        settings.terraform.program,
        Some(file.parent().unwrap().join("bin/tofu"))
    );
    assert!(settings.plan.allow_unmerged);
    for address in [
        "kubernetes_persistent_volume_claim_v1.data",
        "module.shop.postgresql_database.orders",
        "module.db[\"live\"].random_password.admin",
        "dns_zone.main",
    ] {
        assert!(settings.protect.over(address).is_some(), "{address}");
    }
    assert!(settings.protect.over("random_password.admin").is_none());
    let layout = &settings.layout;
    let (repo, path, stage) = (
        "Estate".parse().unwrap(),
        "web".parse().unwrap(),
        "prd".parse().unwrap(),
    );
    assert_eq!(layout.terraform_dir(&repo, Some(&path)), "infra/web/tf");
    assert_eq!(layout.terraform_dir(&repo, None), "infra/tf");
    assert_eq!(
        layout.config_dir(&repo, Some(&path), &stage),
        "infra/web/stages/prd"
    );
    assert!(layout.is_tfvars("x.auto.tfvars"));
    assert!(!layout.is_tfvars("x.tfvars"));
    assert_eq!(
        layout
            .state_key(&settings.state.prefix, &repo, Some(&path), &stage)
            .unwrap()
            .as_str(),
        "tf/live/prd/Estate/web/state.json"
    );
    assert_eq!(
        layout
            .namespace(&"web".parse().unwrap(), &stage)
            .unwrap()
            .as_str(),
        "prd-web-ns"
    );
    let parameters = layout.hook_parameters();
    assert_eq!(parameters.repo, "presync.repoURL");
    assert_eq!(parameters.revision, "presync.commit");
    assert_eq!(parameters.stage, "presync.environment");
    assert_eq!(parameters.namespace, "presync.targetNamespace");
    assert_eq!(parameters.path, "presync.directory");
    let others: serde_json::Value = serde_json::from_str(&layout.to_json()).unwrap();
    let defaults: serde_json::Value = serde_json::from_str(&Layout::default().to_json()).unwrap();
    for (key, value) in defaults.as_object().unwrap() {
        assert_ne!(&others[key], value, "{key}");
    }
}

#[test]
fn a_token_of_github_is_named_by_a_variable_a_file_or_an_app() {
    for (key, expected) in [
        (
            "token_env: DEPLOY_TOKEN",
            GitHubAccess::TokenEnv("DEPLOY_TOKEN".to_owned()),
        ),
        (
            "token_file: secret/token",
            GitHubAccess::TokenFile(PathBuf::from("secret/token")),
        ),
        (
            "app: {id: 12345, installation: 7, private_key_file: /app.pem}",
            GitHubAccess::App(GitHubApp {
                id: "12345".to_owned(),
                installation: 7,
                private_key_file: PathBuf::from("/app.pem"),
            }),
        ),
    ] {
        let forge = format!("{{github: {{owner: a, {key}}}}}");
        let text = SOUND.replace("{git: {root: git}}", &forge);
        let settings = read(&text, SettingsOrigin::Flag).unwrap();
        let ForgeSettings::GitHub { access, .. } = settings.forge else {
            panic!("{key}");
        };
        match (&access, &expected) {
            (GitHubAccess::TokenFile(file), GitHubAccess::TokenFile(end)) => {
                assert!(file.is_absolute() && file.ends_with(end), "{access:?}");
            }
            _ => assert_eq!(access, expected),
        }
    }
}

#[test]
fn every_key_for_github_and_kubernetes_can_be_set() {
    let settings = read(
        "forge: {github: {owner: example-org, url: 'https://github.example.org', api: 'https://github.example.org/api/v3/'}}\n\
         registry: {repo: ArgoCDDeploy}\nstate: {repo: TerraformState}\n\
         runner: {kubernetes: {context: live-admin, namespace: terraform-runs, image: 'registry.example.org/presync:2.4', \
         service_account: terraform, secret: terraform-env, pull_policy: Always, deadline: 60, start_deadline: 5, \
         unreachable: 7, keep: 600, pod_template: {spec: {nodeSelector: {disk: ssd}, priority: 5}}}}\n",
        SettingsOrigin::Flag,
    )
    .unwrap();
    assert_eq!(
        settings.forge,
        ForgeSettings::GitHub {
            owner: "example-org".parse().unwrap(),
            url: "https://github.example.org".parse().unwrap(),
            api: "https://github.example.org/api/v3".to_owned(),
            access: GitHubAccess::TokenEnv("GITHUB_TOKEN".to_owned()),
        }
    );
    assert_eq!(
        settings.runner,
        RunnerSettings::Kubernetes(Box::new(KubernetesSettings {
            context: Some("live-admin".to_owned()),
            namespace: "terraform-runs".parse().unwrap(),
            image: "registry.example.org/presync:2.4".to_owned(),
            pull_policy: Some("Always".to_owned()),
            service_account: "terraform".to_owned(),
            secret: "terraform-env".to_owned(),
            deadline: Duration::from_secs(60),
            start_deadline: Duration::from_secs(5),
            unreachable: Duration::from_secs(7),
            keep: Duration::from_secs(600),
            pod_template: serde_json::from_str(
                r#"{"spec": {"nodeSelector": {"disk": "ssd"}, "priority": 5}}"#
            )
            .unwrap(),
            destroy: DestroyingSettings {
                image: "registry.example.org/presync:2.4".to_owned(),
                service_account: "terraform".to_owned(),
                secret: "terraform-env".to_owned(),
            },
        }))
    );
}

#[test]
fn a_program_is_not_taken_from_a_file_that_was_merely_found() {
    let text = format!("{SOUND}terraform:\n  program: tofu\n");
    assert_eq!(
        read(&text, SettingsOrigin::WorkingFolder).unwrap_err(),
        "stagewright.yaml:6:12: terraform.program names a program to run, and this file was merely found in the working folder; hand it over by --settings"
    );
    for origin in [
        SettingsOrigin::Flag,
        SettingsOrigin::Environment,
        SettingsOrigin::Sandbox,
    ] {
        let settings = read(&text, origin).unwrap();
        assert_eq!(settings.terraform.program, Some(PathBuf::from("tofu")));
    }
}

#[test]
fn an_empty_file_says_which_keys_are_needed() {
    assert_eq!(
        error("# nothing\n"),
        "stagewright.yaml:1:1: the file is empty; it needs the keys forge, registry, state and runner"
    );
}

#[test]
fn a_missing_file_says_where_settings_are_looked_for() {
    let error =
        Settings::load(Path::new("/nowhere/stagewright.yaml"), SettingsOrigin::Flag).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no settings file \"/nowhere/stagewright.yaml\"; settings are read from the file given by --settings, else from the one named in STAGEWRIGHT_SETTINGS, else from stagewright.yaml in the working folder; --sandbox needs none"
    );
}

#[test]
fn faults_name_file_line_and_column() {
    for (text, said) in [
        (
            SOUND.replace("root: git", "root: git, foz: x"),
            "1:26: forge.git: unknown field `foz`, expected `root` or `known_as`",
        ),
        (
            format!("{SOUND}colour: red\n"),
            "5:1: unknown field `colour`, expected one of",
        ),
        (
            format!("{SOUND}runner: local\n"),
            "5:1: the key \"runner\" is already set at 4:1; remove one of the two",
        ),
        (
            format!("{SOUND}---\na: b\n"),
            "5:1: a second YAML document begins here",
        ),
        (
            SOUND.replace("runner: local\n", ""),
            "1:1: missing field `runner`",
        ),
        (
            SOUND.replace("ArgoCDDeploy", "a/b"),
            "2:18: registry.repo: \"a/b\" is not a valid repository name because of the character \"/\" at position 2",
        ),
        (
            SOUND.replace("ArgoCDDeploy", "[]"),
            "2:18: registry.repo: invalid type: sequence, expected a text",
        ),
        (
            SOUND.replace("{git: {root: git}}", "{}"),
            "1:8: forge is empty; it takes one of the keys git and github",
        ),
        (
            SOUND.replace(
                "{git: {root: git}}",
                "{github: {owner: a, token_env: ghp_0123}}",
            ),
            "1:39: forge.github.token_env: token_env holds a token: put the token in a variable, and name that here",
        ),
        (
            SOUND.replace(
                "{git: {root: git}}",
                "{github: {owner: a, token_env: 'A-B'}}",
            ),
            "1:39: forge.github.token_env: token_env must be the name of an environment variable, such as GITHUB_TOKEN",
        ),
        (
            SOUND.replace(
                "{git: {root: git}}",
                "{github: {owner: a, token_env: A, token_file: b}}",
            ),
            "1:17: forge.github takes one of the keys token_env, token_file and app",
        ),
        (
            SOUND.replace("{repo: TerraformState}", "{repo: A, url: /b}"),
            "3:8: state has both repo and url; keep one of them",
        ),
        (
            SOUND.replace("{repo: TerraformState}", "{}"),
            "3:8: state names no repository",
        ),
        (
            SOUND.replace("{repo: TerraformState}", "{repo: A, prefix: /x}"),
            "3:26: state.prefix: \"/x\" is not a valid state key",
        ),
        (
            SOUND.replace("local", "docker"),
            "4:9: runner: unknown runner \"docker\"; known are local and kubernetes",
        ),
        (
            SOUND.replace("runner: local", "runner: {local: {}, kubernetes: {}}"),
            "4:9: runner: runner takes one of the keys",
        ),
        (
            SOUND.replace(
                "local",
                "{kubernetes: {namespace: n, image: i, service_account: a, secret: s, keep: 599}}",
            ),
            "4:22: runner.kubernetes: keep must be a number of seconds from 600 to 604800, not 599",
        ),
        (
            format!("{SOUND}layout:\n  config: x\n"),
            "6:11: layout.config: the template \"x\" of layout.config lacks {stage}",
        ),
        (
            format!("{SOUND}plan: {{allow_unmerged: maybe}}\n"),
            "5:24: plan.allow_unmerged: invalid type",
        ),
        (
            format!("{SOUND}protect: aws_db_*\n"),
            "5:10: protect: invalid type: string \"aws_db_*\", expected a sequence",
        ),
        (
            format!("{SOUND}protect:\n"),
            "5:8: protect holds nothing; list what",
        ),
        (
            format!("{SOUND}protect:\n- aws_db_*\n- ''\n"),
            "7:3: protect[1]: a pattern is empty",
        ),
        (
            format!("{SOUND}protect:\n- {{a: b}}\n"),
            "6:3: protect[0]: invalid type: map, expected a text",
        ),
        (
            format!("{SOUND}protect: [aws_db_*, 'aws_db_?']\n"),
            "5:21: protect[1]: the pattern \"aws_db_?\" has no dot, so it is one of a resource type, and no type has the character '?'",
        ),
        (
            format!("{SOUND}protect: [module.db]\n"),
            "5:11: protect[0]: the pattern \"module.db\" is no resource's address",
        ),
        (
            SOUND.replace("root: git", "root: 'ext::sh -c x'"),
            "1:21: forge.git.root: ",
        ),
        ("- a\n".to_owned(), "1:1: "),
        ("a: [\n".to_owned(), ""),
    ] {
        let shown = error(&text);
        assert!(
            shown.starts_with(&format!("stagewright.yaml:{said}")),
            "{shown}\nnot\n{said}"
        );
    }
}

#[test]
fn a_list_of_nothing_protects_nothing() {
    let settings = read(&format!("{SOUND}protect: []\n"), SettingsOrigin::Flag).unwrap();
    assert!(settings.protect.is_empty());
}

#[test]
fn a_root_above_the_settings_folder_is_followed() {
    let settings = read(
        &SOUND.replace("root: git", "root: ../my git"),
        SettingsOrigin::Flag,
    )
    .unwrap();
    let temp = std::env::temp_dir();
    assert_eq!(
        settings.forge,
        ForgeSettings::Git {
            root: temp.join("my git").to_str().unwrap().parse().unwrap(),
            known_as: None
        }
    );
}

#[test]
fn the_samples_name_every_argo_cd() {
    let of = |name: &str| {
        let settings = Settings::load(&sample(name), SettingsOrigin::Flag).unwrap();
        match settings.applications {
            Some(ApplicationsSettings::Instances(instances)) => instances,
            other => panic!("{other:?}"),
        }
    };
    let instance = |context: Option<&str>, namespaces: &[&str], minimum| InstanceSettings {
        context: context.map(str::to_owned),
        namespaces: namespaces.iter().map(|n| n.parse().unwrap()).collect(),
        minimum,
    };
    assert_eq!(
        of("github-kubernetes.yaml"),
        [instance(None, &["argocd"], 10)]
    );
    assert_eq!(
        of("other-layout.yaml"),
        [
            instance(Some("live"), &["gitops", "team-shops"], 40),
            instance(Some("spare"), &[], 1)
        ]
    );
}

#[test]
fn applications_are_a_file_or_instances_that_can_be_whole() {
    let file = format!("{SOUND}applications: {{file: live.yaml}}\n");
    let settings = read(&file, SettingsOrigin::Sandbox).unwrap();
    assert_eq!(settings.origin, SettingsOrigin::Sandbox);
    assert!(
        matches!(settings.applications, Some(ApplicationsSettings::File(file)) if file.is_absolute() && file.ends_with("live.yaml"))
    );
    assert_eq!(
        read(SOUND, SettingsOrigin::Flag).unwrap().applications,
        None
    );
    for (text, expected) in [
        (
            "{}",
            "5:15: applications is empty; it takes one of the keys instances and file",
        ),
        (
            "{instances: [], file: x}",
            "5:15: applications has both file and instances",
        ),
        ("{instances: []}", "5:27: applications.instances is empty"),
        (
            "{instances: [{namespaces: []}]}",
            "5:27: the namespaces of an instance are an empty list",
        ),
        (
            "{instances: [{minimum: 0}]}",
            "the minimum 0 would take an empty list for a whole one",
        ),
        ("{instances: [{contexts: x}]}", "unknown field `contexts`"),
        ("{instances: {}}", "stagewright.yaml:5:"),
    ] {
        let error = error(&format!("{SOUND}applications: {text}\n"));
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn jenkins_is_a_server_with_a_user_and_the_place_of_a_token_or_a_folder() {
    let settings = read(
        &format!("{SOUND}producers: {{repo: Model}}\njenkins: {{url: 'https://ci.example.com/jenkins/', user: robot, token_env: JENKINS_TOKEN}}\n"),
        SettingsOrigin::Flag,
    )
    .unwrap();
    let producers = settings.producers.unwrap();
    assert_eq!(
        (
            producers.branch.as_str(),
            producers.file.as_str(),
            producers.id_key.as_str()
        ),
        ("main", "pipeline-producers.yaml", "producer")
    );
    assert_eq!(
        settings.jenkins,
        Some(JenkinsSettings::Http {
            url: "https://ci.example.com/jenkins".to_owned(),
            access: Some(JenkinsAccess {
                user: "robot".to_owned(),
                token: TokenPlace::Variable("JENKINS_TOKEN".to_owned()),
            }),
        })
    );
    for (jenkins, expected) in [
        ("{}", "jenkins is empty"),
        ("{url: 'https://a', folder: b}", "both url and folder"),
        ("{url: 'https://a', user: b}", "comes with his API token"),
        ("{url: 'https://a', token_env: B}", "that of a user"),
        (
            "{url: 'https://a', user: b, token_env: C, token_file: d}",
            "both token_env and token_file",
        ),
        ("{folder: a, user: b, token_env: C}", "lets everybody in"),
        (
            "{url: 'https://me:secret@a'}",
            "without user, query and fragment",
        ),
        ("{url: 'ftp://a'}", "must be an https:// or http:// URL"),
        (
            "{url: 'https://a', user: 'a:b', token_env: C}",
            "without \":\"",
        ),
        (
            "{url: 'https://a', user: b, token_env: ghp_x}",
            "token_env holds a token",
        ),
        (
            "{url: 'https://a', user: b, token_env: 'C-D'}",
            "such as JENKINS_TOKEN",
        ),
    ] {
        let text = error(&format!("{SOUND}jenkins: {jenkins}\n"));
        assert!(text.contains(expected), "{jenkins}: {text}");
        assert!(!text.contains("secret"), "{text}");
    }
}
