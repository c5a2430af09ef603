//! What reading one state takes over smart HTTP, however many others the state repository holds.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "support/git_http.rs"]
mod git_http;
#[path = "support/many_states.rs"]
mod many_states;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use git_http::{Credentials, Filters, GitHttp, Options};
use many_states::{Crowd, make_state_repository};
use stagewright::forge::Forge;
use stagewright::forge::git::GitForge;
use stagewright::git::write::Author;
use stagewright::git::{self, Remote};
use stagewright::names::StateKey;
use stagewright::state_backend::store::{Store, StoreError};

const KEY: &str = "argocd/PlatformDeploy/headlamp/prd/terraform.tfstate";
const STATE: &str = "{\"version\": 4, \"serial\": 7, \"lineage\": \"wanted\"}\n";

/// What one read came to.
#[derive(Debug, PartialEq, Eq)]
struct Read {
    state: Option<String>,
    objects: usize,
    requests: usize,
}

fn read(crowd: Crowd, options: Options, credentials: Option<git::Credentials>) -> Read {
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path().join("TerraformState.git");
    make_state_repository(&repository, crowd, KEY, STATE);
    let server = GitHttp::serve(folder.path(), options);
    let url = format!("{}/TerraformState.git", server.url());
    let remote = Remote::new(url.parse().unwrap(), credentials);
    let clone = folder.path().join("clone");
    let key: StateKey = KEY.parse().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut store = open(&remote, &clone);
    let state = runtime.block_on(store.read(&key)).unwrap();
    Read {
        state: state.map(|stored| String::from_utf8(stored.state).unwrap()),
        objects: objects_in(&clone),
        requests: server.requests(),
    }
}

fn open(remote: &Remote, clone: &Path) -> Store {
    let author = Author {
        name: "nobody".to_owned(),
        email: "nobody@example.com".to_owned(),
    };
    Store::open(remote, &"main".parse().unwrap(), clone, author, None).unwrap()
}

#[test]
fn the_folders_of_a_repository_take_as_many_requests_as_one_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path().join("TerraformState.git");
    let crowd = Crowd {
        repositories: 0,
        apps: 30,
    };
    let head = make_state_repository(&repository, crowd, KEY, STATE);
    let head = head.parse().unwrap();
    let server = GitHttp::serve(folder.path(), Options::default());
    let repo = "TerraformState".parse().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let requests = [1, 30].map(|apps| {
        let before = server.requests();
        let root = server.url().parse().unwrap();
        let forge = Forge::Git(GitForge::new(root, None, None));
        let mut files = Vec::new();
        for app in 0..apps {
            let folder = format!("argocd/Monorepo/app{app:04}");
            let found = forge.everything_in(&repo, &head, &folder);
            files.extend(runtime.block_on(found).unwrap());
        }
        assert!(files.iter().all(|f| f.name == "prd/terraform.tfstate"));
        let ids: Vec<_> = files.iter().map(|file| file.id).collect();
        let contents = runtime.block_on(forge.contents(&repo, &ids)).unwrap();
        assert_eq!(contents.len(), apps);
        server.requests() - before
    });
    assert_eq!(requests[0], requests[1]);
}

fn objects_in(clone: &Path) -> usize {
    let output = Command::new("git")
        .arg("--git-dir")
        .arg(clone)
        .args(["cat-file", "--batch-all-objects", "--batch-check"])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().lines().count()
}

#[test]
fn reading_one_state_fetches_the_same_objects_however_many_others_there_are() {
    let alone = Crowd {
        repositories: 0,
        apps: 0,
    };
    let crowd = Crowd {
        repositories: 5000,
        apps: 1000,
    };
    let alone = read(alone, Options::default(), None);
    let crowded = read(crowd, Options::default(), None);
    assert_eq!(crowded.state.as_deref(), Some(STATE));
    // The commit, its top tree, one tree for each of the key's four folders, the state.
    assert_eq!(crowded.objects, 7);
    assert_eq!(crowded, alone);
}

#[test]
fn a_server_that_knows_no_filters_costs_more_and_works() {
    let crowd = Crowd {
        repositories: 20,
        apps: 5,
    };
    let options = Options {
        filters: Filters::Refused,
        ..Options::default()
    };
    let read = read(crowd, options, None);
    assert_eq!(read.state.as_deref(), Some(STATE));
    assert!(read.objects > 25, "{}", read.objects);
}

#[test]
fn credentials_reach_the_server_by_the_helper_alone() {
    let crowd = Crowd {
        repositories: 1,
        apps: 1,
    };
    let options = Options {
        credentials: Some(Credentials {
            user: "robot".to_owned(),
            password: "p@ss: 'w\"ord' $HOME".to_owned(),
        }),
        ..Options::default()
    };
    let credentials = git::Credentials {
        username: "robot".to_owned(),
        password: "p@ss: 'w\"ord' $HOME".to_owned(),
    };
    let read = read(crowd, options, Some(credentials));
    assert_eq!(read.state.as_deref(), Some(STATE));
}

#[test]
fn a_server_that_does_not_speak_git_is_not_taken_for_a_repository_without_states() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // It ends with the test's process.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // The first byte is proof enough of a request.
            stream.read_exact(&mut [0]).ok();
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
            stream.write_all(answer.as_bytes()).ok();
        }
    });
    let url = format!("http://{address}/TerraformState.git");
    let remote = Remote::new(url.parse().unwrap(), None);
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut store = open(&remote, &folder.path().join("clone"));
    let read = runtime.block_on(store.read(&KEY.parse().unwrap()));
    assert!(matches!(read, Err(StoreError::Empty { .. })), "{read:?}");
}
