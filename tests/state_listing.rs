//! What the state repository holds, over real repositories, by git and by GitHub's API, with states that the real sops sealed.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "support/github.rs"]
#[expect(dead_code, reason = "other tests ask the double for faults and counts")]
mod double;
#[path = "support/git_http.rs"]
#[expect(dead_code, reason = "other tests ask it for credentials")]
mod git_http;
#[path = "support/many_states.rs"]
mod many_states;
#[path = "support/repositories.rs"]
mod repositories;
#[path = "support/tools.rs"]
mod tools;

use std::path::Path;

use git_http::{GitHttp, Options};
use git2::{Oid, Repository};
use many_states::{Crowd, make_state_repository};
use stagewright::child::find_program;
use stagewright::estate::open_forge;
use stagewright::estate::states::{Resources, StateFile, StateListing, StateReader};
use stagewright::settings::{Settings, SettingsOrigin};
use stagewright::state_backend::locks::Held;

const RECIPIENT: &str = "age1z8ddlq8swr6zywnv4cxq7fn32mnfvxhxygtsjm9ngytwu5te0sys67h49w";
const KEYS: &str = include_str!("../fixtures/estate/credentials/sandbox.agekey");
/// Three managed instances, and one of a data source.
const STATE: &str = r#"{"version": 4, "terraform_version": "1.11.4", "serial": 7, "lineage": "x", "outputs": {}, "resources": [
  {"mode": "managed", "type": "terraform_data", "name": "a", "provider": "p", "instances": [{"index_key": 0, "attributes": {"id": "1"}}, {"index_key": 1, "attributes": {"id": "2"}}]},
  {"mode": "data", "type": "external", "name": "d", "provider": "p", "instances": [{"attributes": {"id": "-"}}]},
  {"mode": "managed", "type": "terraform_data", "name": "b", "provider": "p", "instances": [{"attributes": {"id": "3"}}]}
], "check_results": null}"#;
const LOCK: &str = r#"{"ID":"ab-1","Operation":"OperationTypeApply","Info":"","Who":"ada@host","Version":"1.11.4","Created":"2026-01-02T03:04:05Z","Path":""}"#;
const DEV: &str = "argocd/PlatformDeploy/headlamp/dev/terraform.tfstate";
const PRD: &str = "argocd/FieldnotesDeploy/prd/terraform.tfstate";

/// Two states, one of them held; a lock without a document and one of no state; rescues; a proof; and what is no state.
fn make(repository: &Path, dev: &str, prd: &str) {
    let files = [
        (DEV, dev),
        (PRD, prd),
        ("argocd/README.md", "Not by hand.\n"),
        ("argocd/PlatformDeploy/terraform.tfstate", "{}\n"),
        ("elsewhere/a/dev/terraform.tfstate", "{}\n"),
    ];
    let head = repositories::repository(repository, "main", &files);
    let lock = format!("{DEV}.lock");
    for (branch, file, content) in [
        (format!("locks/{DEV}"), lock.as_str(), LOCK),
        (format!("locks/{PRD}"), "nothing-of-it", "x\n"),
        ("locks/of@nobody".to_owned(), "x", "x\n"),
        (format!("rescue/{PRD}/7"), PRD, "{}\n"),
        (format!("rescue/{PRD}/8-2"), PRD, "{}\n"),
        ("rescue/odd".to_owned(), "x", "x\n"),
    ] {
        repositories::commit(repository, &branch, None, &[(file, content)]);
    }
    let repository = Repository::open_bare(repository).unwrap();
    let proof = "refs/stagewright/destroyed/argocd/Gone/dev/terraform.tfstate";
    let head = Oid::from_str(&head).unwrap();
    repository.reference(proof, head, false, "").unwrap();
}

fn settings(folder: &Path, forge: &str, state: &str, runner: &str) -> Settings {
    let file = folder.join("stagewright.yaml");
    let text =
        format!("forge: {forge}\nregistry: {{repo: Registry}}\nstate: {state}\nrunner: {runner}\n");
    std::fs::write(&file, text).unwrap();
    Settings::load(&file, SettingsOrigin::Flag).unwrap()
}

fn described(listing: &StateListing) -> Vec<String> {
    let mut lines = Vec::new();
    for state in &listing.states {
        lines.push(format!("state {} of {}", state.key, state.target));
    }
    for lock in &listing.locks {
        lines.push(match lock {
            Held::By { key, lock } => format!("{key} held by {}", lock.text("Who")),
            Held::Unreadable { key, source } => format!("{key} held, {}", source.is_some()),
            Held::Nameless { name } => format!("held: {name}"),
        });
    }
    for rescue in &listing.rescues {
        let key = rescue.key.as_ref().map(ToString::to_string);
        lines.push(format!("{} {key:?} {:?}", rescue.branch, rescue.serial));
    }
    lines.extend(
        listing
            .destroyed
            .keys()
            .map(|key| format!("destroyed {key}")),
    );
    lines.extend(
        listing
            .strangers
            .iter()
            .map(|path| format!("stranger {path}")),
    );
    lines
}

fn expected() -> Vec<String> {
    [
        format!("state {PRD} of FieldnotesDeploy/prd"),
        format!("state {DEV} of PlatformDeploy/headlamp/dev"),
        format!("{PRD} held, false"),
        format!("{DEV} held by ada@host"),
        "held: of@nobody".to_owned(),
        format!("rescue/{PRD}/7 Some({PRD:?}) Some(7)"),
        format!("rescue/{PRD}/8-2 Some({PRD:?}) Some(8)"),
        "rescue/odd None None".to_owned(),
        "destroyed argocd/Gone/dev/terraform.tfstate".to_owned(),
        "stranger argocd/PlatformDeploy/terraform.tfstate".to_owned(),
        "stranger argocd/README.md".to_owned(),
    ]
    .to_vec()
}

/// The listing, and what each state was counted to.
async fn read(settings: &Settings) -> (Vec<String>, Vec<String>) {
    let forge = open_forge(settings).unwrap();
    let reader = StateReader::open(&forge, settings).unwrap();
    let listing = reader.list().await.unwrap();
    let states: Vec<&StateFile> = listing.states.iter().collect();
    let counts = reader.counts(&states).await.unwrap();
    let counts = counts.values().map(|count| match count {
        Ok(Resources::Exactly(count)) => format!("{count}"),
        Ok(Resources::AtMost { most, source }) => format!("at most {most}, {}", source.is_some()),
        Err(error) => error.to_string(),
    });
    (described(&listing), counts.collect())
}

#[tokio::test]
async fn a_repository_of_the_forge_and_one_anywhere_are_read_alike() {
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path().join("git/States.git");
    make(&repository, STATE, "not a state\n");
    let url = format!("{{url: \"file://{}\"}}", repository.display());
    for state in ["{repo: States}", url.as_str()] {
        let settings = settings(folder.path(), "{git: {root: git}}", state, "local");
        let (listing, counts) = read(&settings).await;
        assert_eq!(listing, expected(), "{state}");
        assert!(
            counts[0].contains("not the JSON of a Terraform state"),
            "{counts:?}"
        );
        assert_eq!(counts[1], "3");
    }
}

#[tokio::test]
async fn a_repository_on_github_is_read_by_its_api() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("git");
    make(&root.join("States.git"), STATE, STATE);
    std::fs::write(folder.path().join("token"), double::TOKEN).unwrap();
    let github = double::GitHub::serve(&root);
    let forge = format!(
        "{{github: {{owner: {}, api: \"{}\", token_file: token}}}}",
        double::OWNER,
        github.api()
    );
    let settings = settings(folder.path(), &forge, "{repo: States}", "local");
    let (listing, counts) = read(&settings).await;
    assert_eq!(listing, expected());
    assert_eq!(counts, ["3", "3"]);
}

#[tokio::test]
async fn a_sealed_state_is_counted_with_its_key_and_bounded_without() {
    let sops = find_program(Path::new("sops"));
    let Some(sops) = tools::found_or_left_out("sops", "STAGEWRIGHT_TOOLS_REQUIRED", sops) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain.json");
    std::fs::write(&plain, STATE).unwrap();
    let sealed = |kind: &str| {
        let output = std::process::Command::new(&sops)
            .args(["--config", "/dev/null", "encrypt", "--age", RECIPIENT])
            .args(["--input-type", kind, "--output-type", "json"])
            .arg(&plain)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    make(
        &folder.path().join("git/States.git"),
        &sealed("json"),
        &sealed("binary"),
    );
    std::fs::write(folder.path().join("right.agekey"), KEYS).unwrap();
    std::fs::write(folder.path().join("wrong.agekey"), "# none\n").unwrap();
    for (runner, expected) in [
        ("local", "at most 4, false"),
        (
            "{local: {sops_age_key_file: wrong.agekey}}",
            "at most 4, true",
        ),
        ("{local: {sops_age_key_file: right.agekey}}", "3"),
    ] {
        let settings = settings(
            folder.path(),
            "{git: {root: git}}",
            "{repo: States}",
            runner,
        );
        let (_, counts) = read(&settings).await;
        assert!(counts[0].contains("as binary data"), "{runner}: {counts:?}");
        assert_eq!(counts[1], expected, "{runner}");
    }
}

#[test]
fn ten_thousand_states_take_as_many_requests_as_one() {
    let mut requests = Vec::new();
    for repositories in [1, 10_000] {
        let folder = tempfile::tempdir().unwrap();
        let crowd = Crowd {
            repositories,
            apps: 0,
        };
        make_state_repository(&folder.path().join("States.git"), crowd, DEV, STATE);
        let server = GitHttp::serve(folder.path(), Options::default());
        let state = format!("{{url: \"{}/States.git\"}}", server.url());
        let settings = settings(folder.path(), "{git: {root: git}}", &state, "local");
        // The server has a runtime of its own.
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (listing, counts) = runtime.block_on(read(&settings));
        assert_eq!(listing.len(), repositories + 1);
        assert_eq!(counts.len(), repositories + 1);
        requests.push(server.requests());
    }
    assert_eq!(requests[0], requests[1]);
}
