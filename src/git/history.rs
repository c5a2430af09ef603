//! Commits without their trees: which commit a short name means, and from where it can be reached.

use std::path::Path;

use crate::names::{BranchName, CommitPrefix, CommitSha};

use super::{GitError, ORIGIN, Remote, init_bare, parse_sha, plain_git, run};

/// Which commits may be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Only those that the branch holds.
    TrackedBranch,
    /// Those of any branch.
    AnyBranch,
}

/// Where a commit was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Located {
    /// On the branch that was asked for.
    OnBranch(CommitSha),
    /// Not there, but on these others.
    Elsewhere(CommitSha, Vec<String>),
}

/// Finds the one commit whose id begins with `prefix`, fetching commits alone into `folder` (made here).
/// The tracked branch is asked first, then every other one.
pub async fn locate(
    remote: &Remote,
    folder: &Path,
    branch: &BranchName,
    prefix: &CommitPrefix,
) -> Result<Located, GitError> {
    let act = format!("fetching the commits of {}", remote.url());
    // Said first, since git's words for a missing branch would be its own.
    remote.head(branch).await?;
    init_bare(remote, folder)?;
    let mut git = remote.git(Some(folder))?;
    git.args(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"]);
    git.args(["--no-auto-maintenance", "--filter=tree:0"]);
    git.args([ORIGIN, "+refs/heads/*:refs/heads/*"]);
    run(git, &act, b"").await?;

    let tracked = format!("refs/heads/{branch}");
    let on_branch = matching(folder, &act, prefix, &tracked).await?;
    let ambiguous = || GitError::Ambiguous {
        url: remote.url().clone(),
        prefix: prefix.to_string(),
    };
    let anywhere = matching(folder, &act, prefix, "--all").await?;
    match (on_branch.as_slice(), anywhere.as_slice()) {
        // A prefix that another branch's commit shares is no less ambiguous to the person who typed it.
        (_, [_, _, ..]) => Err(ambiguous()),
        ([sha], _) => Ok(Located::OnBranch(sha.clone())),
        ([], [sha]) => {
            let mut git = plain_git(Some(folder))?;
            git.args(["for-each-ref", "--format=%(refname:lstrip=2)"]);
            git.args(["--contains", sha.as_str(), "refs/heads"]);
            let output = run(git, &act, b"").await?;
            let branches = String::from_utf8_lossy(&output)
                .lines()
                .map(str::to_owned)
                .collect();
            Ok(Located::Elsewhere(sha.clone(), branches))
        }
        _ => Err(GitError::NoCommit {
            url: remote.url().clone(),
            commit: prefix.to_string(),
        }),
    }
}

async fn matching(
    folder: &Path,
    act: &str,
    prefix: &CommitPrefix,
    from: &str,
) -> Result<Vec<CommitSha>, GitError> {
    let mut git = plain_git(Some(folder))?;
    git.args(["rev-list", from]);
    let output = run(git, act, b"").await?;
    String::from_utf8_lossy(&output)
        .lines()
        .filter(|line| line.starts_with(prefix.as_str()))
        .map(|line| parse_sha(act, line))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use git2::{ObjectType, Oid, Repository};

    use super::*;

    /// Two commits whose ids begin with the same seven digits, one on `main` and one on `other`.
    fn alike(repository: &Repository) -> CommitPrefix {
        let tree = repository.treebuilder(None).unwrap().write().unwrap();
        let commit = |n: usize| {
            format!(
                "tree {tree}\nauthor A <a@example.com> 1 +0000\ncommitter A <a@example.com> 1 +0000\n\n{n}\n"
            )
        };
        let mut seen: HashMap<String, usize> = HashMap::new();
        for n in 0.. {
            let id = Oid::hash_object(ObjectType::Commit, commit(n).as_bytes()).unwrap();
            let digits = id.to_string().chars().take(7).collect::<String>();
            if let Some(first) = seen.insert(digits.clone(), n) {
                for (n, branch) in [(first, "main"), (n, "other")] {
                    let objects = repository.odb().unwrap();
                    let id = objects
                        .write(ObjectType::Commit, commit(n).as_bytes())
                        .unwrap();
                    let name = format!("refs/heads/{branch}");
                    repository.reference(&name, id, false, "").unwrap();
                }
                return digits.parse().unwrap();
            }
        }
        panic!("ids of seven digits are finite")
    }

    #[tokio::test]
    async fn first_digits_that_two_commits_share_are_refused_and_one_more_tells_them_apart() {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(folder.path().join("it.git")).unwrap();
        let prefix = alike(&repository);
        let url = folder.path().join("it.git");
        let remote = Remote::new(url.to_str().unwrap().parse().unwrap(), None);
        let main: BranchName = "main".parse().unwrap();
        let ambiguous = locate(&remote, &folder.path().join("a"), &main, &prefix).await;
        assert!(
            matches!(ambiguous, Err(GitError::Ambiguous { .. })),
            "{ambiguous:?}"
        );
        let head = repository.refname_to_id("refs/heads/main").unwrap();
        let whole: CommitPrefix = head.to_string().parse().unwrap();
        let found = locate(&remote, &folder.path().join("b"), &main, &whole).await;
        assert_eq!(
            found.unwrap(),
            Located::OnBranch(head.to_string().parse().unwrap())
        );
    }
}
