//! GitHub as the forge, against a double that is held to GitHub's own description of its API.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

#[path = "support/github.rs"]
mod double;
#[path = "support/estate.rs"]
#[expect(dead_code, reason = "other tests commit to its repositories")]
mod estate;
#[path = "support/git_http.rs"]
#[expect(
    dead_code,
    reason = "other tests count its requests and ask it for credentials"
)]
mod git_http;
#[path = "support/proxy.rs"]
mod proxy;
#[path = "support/repositories.rs"]
mod repositories;

#[path = "github/below.rs"]
mod below;
#[path = "github/destroying.rs"]
mod destroying;
#[path = "github/faults.rs"]
mod faults;
#[path = "github/probing.rs"]
mod probing;
#[path = "github/reading.rs"]
mod reading;
#[path = "github/rights.rs"]
mod rights;
#[path = "github/writing.rs"]
mod writing;

use std::path::{Path, PathBuf};
use std::time::Duration;

use double::{GitHub, OWNER, TOKEN};
use git2::Repository;
use stagewright::forge::github::{GitHubForge, Patience};
use stagewright::forge::{FolderToGo, Forge, ForgeError, Removal};
use stagewright::git::write::Author;
use stagewright::names::{BranchName, CommitSha, RepoName};
use stagewright::settings::{GitHubAccess, GitHubApp};
use tempfile::TempDir;

/// A double over a repository `Deploy`.
struct World {
    folder: TempDir,
    github: GitHub,
    repo: RepoName,
    branch: BranchName,
    head: CommitSha,
}

const FILES: [(&str, &str); 6] = [
    ("config/demo/values.yaml", "a: 1\n"),
    ("config/demo/extra/more.yaml", "b: 2\n"),
    ("config/prd/values.yaml", "a: 3\n"),
    ("config.yaml", "c\n"),
    ("only/demo/values.yaml", "a: 4\n"),
    ("README.md", "The deploy repository.\n"),
];

impl World {
    fn new() -> World {
        World::with(&FILES)
    }

    fn with(files: &[(&str, &str)]) -> World {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("git");
        let head = repositories::repository(&root.join("Deploy.git"), "main", files);
        std::fs::write(folder.path().join("token"), format!("{TOKEN}\n")).unwrap();
        World {
            github: GitHub::serve(&root),
            folder,
            repo: "Deploy".parse().unwrap(),
            branch: BranchName::main(),
            head: head.parse().unwrap(),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("git/Deploy.git")
    }

    fn repository(&self) -> Repository {
        Repository::open_bare(self.path()).unwrap()
    }

    fn forge(&self) -> Forge {
        self.forge_by(&GitHubAccess::TokenFile(self.folder.path().join("token")))
    }

    fn forge_of_app(&self) -> Forge {
        self.forge_by(&GitHubAccess::App(GitHubApp {
            id: "12345".to_owned(),
            installation: 7,
            private_key_file: Path::new("tests/github/app-key.pem").to_owned(),
        }))
    }

    /// Seconds are milliseconds here.
    fn forge_by(&self, access: &GitHubAccess) -> Forge {
        let patience = Patience {
            second: Duration::from_millis(1),
            longest: 900,
        };
        let url = "https://github.com".parse().unwrap();
        let owner = OWNER.parse().unwrap();
        let forge = GitHubForge::new(owner, &url, &self.github.api(), access, patience);
        Forge::GitHub(Box::new(forge.unwrap()))
    }

    /// The id of a folder's tree at the first commit.
    fn tree(&self, folder: &str) -> String {
        let repository = self.repository();
        let tree = repository.revparse_single(&format!("{}:{folder}", self.head));
        tree.unwrap().id().to_string()
    }

    async fn remove(&self, forge: &Forge, folder: &str) -> Result<Removal, ForgeError> {
        let tree = self.tree(folder);
        let folder = FolderToGo {
            repo: &self.repo,
            branch: &self.branch,
            folder,
            tree: &tree,
        };
        forge
            .remove_folder(folder, "Remove it\n\nDigest: x\n", &author())
            .await
    }

    /// Every file of the branch, and its blob.
    fn files(&self, revision: &str) -> Vec<(String, String)> {
        let repository = self.repository();
        let tree = repository
            .revparse_single(revision)
            .unwrap()
            .peel_to_tree()
            .unwrap();
        let mut files = Vec::new();
        tree.walk(git2::TreeWalkMode::PreOrder, |folder, entry| {
            if entry.kind() == Some(git2::ObjectType::Blob) {
                files.push((
                    format!("{folder}{}", entry.name().unwrap()),
                    entry.id().to_string(),
                ));
            }
            git2::TreeWalkResult::Ok
        })
        .unwrap();
        files
    }

    /// How many commits the branch has.
    fn commits(&self) -> usize {
        let repository = self.repository();
        let mut walk = repository.revwalk().unwrap();
        walk.push_ref("refs/heads/main").unwrap();
        walk.count()
    }

    /// Another's commit to the branch.
    fn other_commit(path: &Path, name: &str) {
        let repository = Repository::open_bare(path).unwrap();
        let head = repository.refname_to_id("refs/heads/main").unwrap();
        repositories::commit(path, "main", Some(&head.to_string()), &[(name, "x\n")]);
    }
}

fn author() -> Author {
    Author {
        name: "Ada".to_owned(),
        email: "ada@example.org".to_owned(),
    }
}

/// The whole chain of an error.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
