//! The whole destroy of a retired stage with GitHub as the forge: the job asks the API, presync fetches by git.

use std::fs;
use std::process::Output;

use git2::Repository;
use rcgen::CertificateParams;

use crate::double::{Fault, GitHub, Seen, TOKEN, What};
use crate::estate::Estate;
use crate::git_http::{GitHttp, Options};
use crate::proxy::Proxy;

/// The example estate, at home on GitHub.
struct Site {
    estate: Estate,
    github: GitHub,
    _git: GitHttp,
}

impl Site {
    fn new() -> Site {
        let estate = Estate::unpack();
        let root = estate.path().join("sandbox/git");
        let github = GitHub::serve(&root);
        let git = GitHttp::serve(&root, Options::default());
        // git goes to the test's server where the settings, and everybody else, have github.com.
        let instead = format!(
            "[url \"{}/\"]\n\tinsteadOf = https://github.com/example/\n",
            git.url()
        );
        fs::write(estate.path().join(".gitconfig"), instead).unwrap();
        let file = estate.path().join("sandbox/stagewright.yaml");
        let settings = fs::read_to_string(&file).unwrap();
        let (before, after) = settings.split_once("forge:").unwrap();
        let (_, after) = after.split_once("registry:").unwrap();
        let api = github.api();
        let forge = format!("forge: {{github: {{owner: example, api: '{api}'}}}}");
        fs::write(&file, format!("{before}{forge}\n\nregistry:{after}")).unwrap();
        Site {
            estate,
            github,
            _git: git,
        }
    }

    fn step(&self, step: &str) -> Output {
        self.step_with(step, &[])
    }

    fn step_with(&self, step: &str, variables: &[(&str, &str)]) -> Output {
        let mut command = self
            .estate
            .program(env!("CARGO_BIN_EXE_stagewright-destroy-stage"));
        command
            .envs(variables.iter().copied())
            .args([step, "--sandbox=sandbox", "--repo", "FieldnotesDeploy"])
            .args(["--stage", "demo", "--namespace", "fieldnotes-demo"])
            .args(["--record", "record.json", "-v"])
            .env("GITHUB_TOKEN", TOKEN)
            .output()
            .unwrap()
    }

    /// A step that succeeds, what it says, and the requests for the deploy repository that it makes.
    fn done(&self, step: &str) -> (String, Vec<Seen>) {
        self.github.seen();
        let output = self.step(step);
        let said = String::from_utf8(output.stderr).unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{step}: {shown}{said}");
        assert!(!format!("{shown}{said}").contains(TOKEN), "{step}");
        let of_repository = |seen: &Seen| seen.path.starts_with("/repos/example/FieldnotesDeploy");
        let mut seen = self.github.seen();
        seen.retain(of_repository);
        (said, seen)
    }

    fn repository(&self) -> Repository {
        Repository::open_bare(self.estate.repository("FieldnotesDeploy")).unwrap()
    }

    fn has(&self, path: &str) -> bool {
        self.repository()
            .revparse_single(&format!("main:{path}"))
            .is_ok()
    }

    /// 120,000 files more: 300 folders of 400, which share one tree, as git allows.
    fn grow(&self) {
        let repository = self.repository();
        let head = repository
            .revparse_single("main")
            .unwrap()
            .peel_to_commit()
            .unwrap();
        let blob = repository.blob(b"x").unwrap();
        let mut folder = repository.treebuilder(None).unwrap();
        for number in 0..400 {
            folder
                .insert(format!("f{number}"), blob, 0o100_644)
                .unwrap();
        }
        let folder = folder.write().unwrap();
        let mut folders = repository.treebuilder(None).unwrap();
        for number in 0..300 {
            folders
                .insert(format!("d{number}"), folder, 0o040_000)
                .unwrap();
        }
        let mut top = repository.treebuilder(Some(&head.tree().unwrap())).unwrap();
        top.insert("bulk", folders.write().unwrap(), 0o040_000)
            .unwrap();
        let tree = repository.find_tree(top.write().unwrap()).unwrap();
        let by = head.author();
        repository
            .commit(Some("refs/heads/main"), &by, &by, "Grow", &tree, &[&head])
            .unwrap();
    }
}

#[test]
fn a_retired_stage_goes_and_its_config_by_at_most_twelve_requests_of_a_large_repository() {
    let site = Site::new();
    site.done("check");
    site.done("preview");
    let (_, seen) = site.done("destroy");
    assert!(seen.iter().all(|seen| seen.method == "GET"), "{seen:?}");
    assert!(site.has("config/demo"));
    site.grow();
    let (said, seen) = site.done("remove-config");
    assert!(said.contains(" removes config/demo/\n"), "{said}");
    assert!(!site.has("config/demo") && site.has("config/prd") && site.has("bulk/d7/f7"));
    // What the guard looks at again goes before; the removal begins with the branch's head.
    let begins = seen
        .iter()
        .rposition(|seen| seen.path.ends_with("/git/ref/heads/main"));
    let removal = &seen[begins.unwrap()..];
    assert!(removal.len() <= 12, "{removal:#?}");
    let (said, _) = site.done("remove-config");
    assert!(said.contains("nothing to remove"), "{said}");
}

#[test]
fn an_archived_repository_is_refused_by_each_step_before_anything_is_launched() {
    let site = Site::new();
    site.done("preview");
    site.github.change(|account| account.archived = true);
    for step in ["destroy", "check", "preview"] {
        let output = site.step(step);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{step}: {said}");
        let refusal = "FieldnotesDeploy could not be written\n  because: it is archived";
        assert!(said.contains(refusal), "{step}: {said}");
        assert!(output.stdout.is_empty(), "{step}");
    }
}

#[test]
fn a_limit_that_lasts_too_long_ends_with_the_code_for_later() {
    let site = Site::new();
    let limit = What::with_headers(403, "slow down", &[("retry-after", "3600")]);
    site.github.fault(Fault::times(9, "GET", "/repos/", limit));
    let output = site.step("check");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(10), "{said}");
    assert!(said.contains("try again later"), "{said}");
}

#[test]
fn the_api_is_reached_through_a_proxy_and_known_by_a_certificate_of_ones_own() {
    let site = Site::new();
    let host = "github.example.test";
    let sound = CertificateParams::new([host.to_owned()]).unwrap();
    let proxy = Proxy::showing(&sound, site.github.address(), host);
    let file = site.estate.path().join("sandbox/stagewright.yaml");
    let settings = fs::read_to_string(&file).unwrap();
    let api = format!("https://{host}/api/v3");
    fs::write(&file, settings.replace(&site.github.api(), &api)).unwrap();
    let certificate = site.estate.path().join("ca.pem");
    fs::write(&certificate, &proxy.certificate).unwrap();
    let trust = ("SSL_CERT_FILE", certificate.to_str().unwrap());
    let through = ("HTTPS_PROXY", proxy.url.as_str());

    let output = site.step_with("check", &[through, trust]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(!site.github.seen().is_empty());

    // Without the certificate nothing is sent, and the same is not tried again.
    let connections = proxy.connections();
    let output = site.step_with("check", &[through]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let told = format!("the certificate of https://{host} is by an authority that is not trusted");
    assert!(said.contains(&told), "{said}");
    assert!(site.github.seen().is_empty());
    assert_eq!(proxy.connections(), connections + 1);
}
