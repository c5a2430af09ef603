//! Which commit is meant: by a branch, a tag, the first digits of its id, or a revision as Argo CD takes it.

use std::collections::{BTreeMap, BTreeSet};

use http::StatusCode;
use serde::Deserialize;

use super::error::GitHubError;
use super::object::{Named, Reference};
use super::{GitHubForge, encoded, encoded_whole, unread};
use crate::forge::ForgeError;
use crate::git::GitError;
use crate::git::history::Located;
use crate::names::{BranchName, CommitPrefix, CommitSha, RepoName};

/// How many branches are looked at for a commit that is not on the tracked one.
const BRANCHES: usize = 30;

#[derive(Deserialize)]
struct Branch {
    name: String,
    commit: Named,
}

#[derive(Deserialize)]
struct Comparison {
    status: String,
}

impl GitHubForge {
    pub(in crate::forge) async fn head(
        &self,
        repo: &RepoName,
        branch: &BranchName,
    ) -> Result<CommitSha, ForgeError> {
        let found = self.reference(repo, &format!("heads/{branch}")).await;
        if let Some(head) = found.map_err(unread(repo))? {
            return Ok(head);
        }
        let branches = self.branches(repo).await.map_err(unread(repo))?;
        Err(ForgeError::Absent(GitError::NoBranch {
            url: self.url(repo),
            branch: branch.clone(),
            branches: branches.into_iter().map(|b| b.name).take(10).collect(),
        }))
    }

    /// Where a ref (without `refs/`) is; of an annotated tag the commit that it tags.
    pub(super) async fn reference(
        &self,
        repo: &RepoName,
        name: &str,
    ) -> Result<Option<CommitSha>, GitHubError> {
        let path = self.path(repo, &format!("/git/ref/{}", encoded(name)));
        let Some(found) = self.look::<Reference>(path).await? else {
            return Ok(None);
        };
        let mut object = found.object;
        while object.kind == "tag" {
            let path = self.path(repo, &format!("/git/tags/{}", encoded(&object.sha)));
            object = self.get::<Reference>(path).await?.object;
        }
        Ok(object.sha.parse().ok())
    }

    /// The refs below a namespace (`refs/…/`), and where they are.
    pub(in crate::forge) async fn refs_below(
        &self,
        repo: &RepoName,
        namespace: &str,
    ) -> Result<BTreeMap<String, CommitSha>, ForgeError> {
        let refs = self.refs_that_begin(repo, namespace).await;
        refs.map_err(unread(repo))
    }

    /// The refs whose names begin so, from `refs/` on, and where they are.
    pub(super) async fn refs_that_begin(
        &self,
        repo: &RepoName,
        namespace: &str,
    ) -> Result<BTreeMap<String, CommitSha>, GitHubError> {
        // GitHub takes a beginning of a name, and not for certain one with a slash at its end.
        let beginning = namespace.trim_start_matches("refs/").trim_end_matches('/');
        let path = self.path(repo, &format!("/git/matching-refs/{}", encoded(beginning)));
        // 409: the repository is empty.
        let found = self.api.list::<Reference>(path, StatusCode::CONFLICT).await;
        let found = found?.unwrap_or_default();
        let found = found.into_iter().filter(|r| r.name.starts_with(namespace));
        Ok(found
            .filter_map(|r| Some((r.name, r.object.sha.parse().ok()?)))
            .collect())
    }

    async fn branches(&self, repo: &RepoName) -> Result<Vec<Branch>, GitHubError> {
        self.get(self.path(repo, "/branches?per_page=100")).await
    }

    /// Whether `branch` (a branch's name or a commit's id) holds the commit.
    pub(super) async fn holds(
        &self,
        repo: &RepoName,
        branch: &str,
        commit: &CommitSha,
    ) -> Result<bool, GitHubError> {
        let range = format!("/compare/{}...{commit}?per_page=1", encoded_whole(branch));
        let compared = self.look::<Comparison>(self.path(repo, &range)).await?;
        Ok(compared.is_some_and(|c| matches!(c.status.as_str(), "identical" | "behind")))
    }

    /// GitHub serves the commits of a repository's forks under its name, so one that no branch holds is told as none.
    pub(in crate::forge) async fn locate(
        &self,
        repo: &RepoName,
        branch: &BranchName,
        prefix: &CommitPrefix,
    ) -> Result<Located, ForgeError> {
        // Said first, as for every forge.
        self.head(repo, branch).await?;
        let absent = || {
            ForgeError::Absent(GitError::NoCommit {
                url: self.url(repo),
                commit: prefix.to_string(),
            })
        };
        let read = async {
            let path = self.path(repo, &format!("/commits/{prefix}"));
            let Some(found) = self.look::<Named>(path).await? else {
                return Ok(None);
            };
            // A branch of that name would have gone first.
            let Some(commit) = found.sha.parse::<CommitSha>().ok() else {
                return Ok(None);
            };
            if !found.sha.starts_with(prefix.as_str()) {
                return Ok(None);
            }
            if self.holds(repo, branch.as_str(), &commit).await? {
                return Ok(Some(Located::OnBranch(commit)));
            }
            let mut on = Vec::new();
            for other in self.branches(repo).await?.into_iter().take(BRANCHES) {
                if other.commit.sha == commit.as_str()
                    || self.holds(repo, &other.name, &commit).await?
                {
                    on.push(other.name);
                }
            }
            Ok((!on.is_empty()).then_some(Located::Elsewhere(commit, on)))
        };
        read.await.map_err(unread(repo))?.ok_or_else(absent)
    }

    pub(in crate::forge) async fn revision(
        &self,
        repo: &RepoName,
        revision: &str,
    ) -> Result<BTreeSet<CommitSha>, ForgeError> {
        if let Ok(commit) = revision.parse::<CommitSha>() {
            return Ok(BTreeSet::from([commit]));
        }
        let read = async {
            let names = match revision {
                "" | "HEAD" => vec![format!(
                    "heads/{}",
                    self.repository(repo).await?.default_branch
                )],
                text => match text.strip_prefix("refs/") {
                    Some(name) => vec![name.to_owned()],
                    None => vec![format!("heads/{text}"), format!("tags/{text}")],
                },
            };
            let mut commits = BTreeSet::new();
            // A range of versions is no ref's name, and git has none with these characters.
            for name in names.iter().filter(|name| is_ref(name)) {
                commits.extend(self.reference(repo, name).await?);
            }
            Ok(commits)
        };
        read.await.map_err(unread(repo))
    }
}

/// What a ref may be called is what a branch may be called, below its first segment.
fn is_ref(name: &str) -> bool {
    let below = name.split_once('/').map(|(_, below)| below);
    below.is_some_and(|below| below.parse::<BranchName>().is_ok())
}
