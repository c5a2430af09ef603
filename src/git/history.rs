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

/// A commit that wrote something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its id.
    pub commit: CommitSha,
    /// Its author, by name and address.
    pub by: String,
    /// When it was written, as RFC 3339.
    pub at: String,
}

/// How far back a commit is looked for.
const DEPTH: usize = 10_000;

/// The newest commit of a branch the first line of whose message fits, among its last 10,000; commits alone are fetched,
/// into `folder` (made here).
pub async fn last_with_subject(
    remote: &Remote,
    folder: &Path,
    branch: &BranchName,
    fits: impl Fn(&str) -> bool,
) -> Result<Option<Written>, GitError> {
    let act = format!("fetching the commits of {branch} of {}", remote.url());
    init_bare(remote, folder)?;
    let mut git = remote.git(Some(folder))?;
    git.args(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"]);
    git.args(["--no-auto-maintenance", "--filter=tree:0"]);
    git.arg(format!("--depth={DEPTH}"));
    git.args([ORIGIN, &format!("+refs/heads/{branch}:refs/heads/{branch}")]);
    run(git, &act, b"").await?;
    let mut git = plain_git(Some(folder))?;
    git.args(["log", "--format=%H%x00%an <%ae>%x00%aI%x00%s"]);
    git.arg(format!("refs/heads/{branch}"));
    let output = run(git, &act, b"").await?;
    for line in String::from_utf8_lossy(&output).lines() {
        let mut fields = line.splitn(4, '\0');
        if let (Some(commit), Some(by), Some(at), Some(found)) =
            (fields.next(), fields.next(), fields.next(), fields.next())
            && fits(found)
        {
            return Ok(Some(Written {
                commit: parse_sha(&act, commit)?,
                by: by.to_owned(),
                at: at.to_owned(),
            }));
        }
    }
    Ok(None)
}

/// The newest commit from `revision` back that has a folder which `revision` itself has not. Commits and trees are fetched
/// into `folder` (made here), no file.
pub async fn last_with_folder(
    remote: &Remote,
    folder: &Path,
    revision: &CommitSha,
    path: &str,
) -> Result<Option<CommitSha>, GitError> {
    let act = format!("fetching the history of {}", remote.url());
    init_bare(remote, folder)?;
    let mut git = remote.git(Some(folder))?;
    git.args(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"]);
    git.args(["--no-auto-maintenance", "--filter=blob:none"]);
    git.args([ORIGIN, &format!("+{revision}:refs/heads/it")]);
    run(git, &act, b"").await?;
    let mut git = plain_git(Some(folder))?;
    git.args(["log", "-1", "--format=%P", "refs/heads/it", "--"]);
    git.arg(format!(":(literal){path}"));
    let output = run(git, &act, b"").await?;
    let parents = String::from_utf8_lossy(&output);
    // What the last commit that touched it found there, and left without.
    match parents.split_ascii_whitespace().next() {
        Some(parent) => Ok(Some(parse_sha(&act, parent)?)),
        None => Ok(None),
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
