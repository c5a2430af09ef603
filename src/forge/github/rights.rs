//! Whether the branch would take a commit of ours, as far as GitHub lets it be read; nothing is written.

use http::StatusCode;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::names::{BranchName, RepoName};
use crate::report;

use super::api::Form;
use super::error::{GitHubError, Said};
use super::{GitHubForge, encoded_whole, unread, unwritten};
use crate::forge::ForgeError;

/// A branch (the schema `branch-with-protection`).
#[derive(Deserialize)]
struct Branch {
    protected: bool,
}

/// What protects it (the schema `branch-protection`); only who may administer the repository reads it.
#[derive(Deserialize)]
struct Protection {
    required_pull_request_reviews: Option<IgnoredAny>,
    required_status_checks: Option<IgnoredAny>,
    #[serde(default)]
    enforce_admins: Switch,
    #[serde(default)]
    required_signatures: Switch,
    #[serde(default)]
    lock_branch: Switch,
}

#[derive(Default, Deserialize)]
struct Switch {
    enabled: bool,
}

/// A rule in force for a branch (the schema `repository-rule-detailed`).
#[derive(Deserialize)]
struct Rule {
    #[serde(rename = "type")]
    kind: String,
    ruleset_id: Option<u64>,
}

/// A ruleset (the schema `repository-ruleset`). Who may not write to it is told less.
#[derive(Deserialize)]
struct Ruleset {
    name: String,
    current_user_can_bypass: Option<String>,
}

/// The rules that stop a commit which comes by itself. One that judges its message or its files is left to the commit.
const STOPPING: [&str; 5] = [
    "update",
    "pull_request",
    "required_status_checks",
    "required_deployments",
    "merge_queue",
];
/// The rule that takes signed commits only.
const SIGNATURES: &str = "required_signatures";

impl super::Repository {
    /// Refuses one that is only read any more.
    fn is_open(&self) -> Result<(), GitHubError> {
        match self.read_only() {
            Some(how) => Err(GitHubError::ReadOnly { how }),
            None => Ok(()),
        }
    }
}

impl GitHubForge {
    /// Refuses a repository that is only read any more, whoever asks.
    pub(in crate::forge) async fn takes_commits(&self, repo: &RepoName) -> Result<(), ForgeError> {
        let found = self.repository(repo).await.map_err(unread(repo))?;
        found.is_open().map_err(unwritten(repo))
    }

    /// Refuses what GitHub lets us see that it would refuse. What it does not let us see is said, and left to the commit.
    pub(in crate::forge) async fn may_write(
        &self,
        repo: &RepoName,
        branch: &BranchName,
    ) -> Result<(), ForgeError> {
        let asked = async {
            self.may_push(repo).await?;
            self.is_unprotected(repo, branch).await?;
            self.is_unruled(repo, branch).await
        };
        asked.await.map_err(unwritten(repo))
    }

    async fn may_push(&self, repo: &RepoName) -> Result<(), GitHubError> {
        let path = self.path(repo, "");
        let answer = self.api.get(path.clone(), Form::Json).await?;
        let found: super::Repository = answer.content(&format!("GET {path}"))?;
        self.same_name(repo, &found)?;
        found.is_open()?;
        let forbidden = |needs: Option<&str>, said: &str| GitHubError::Forbidden {
            needs: needs.map(str::to_owned),
            said: Said(said.to_owned()),
        };
        // An installation has its own rights, and the repository tells of a person's.
        if let Some(may) = self.api.app_may_write().await? {
            return match may {
                true => Ok(()),
                false => Err(forbidden(
                    Some("Contents: read and write, of the App and of its installation"),
                    "the installation's permissions hold no contents: write",
                )),
            };
        }
        if found
            .permissions
            .is_some_and(|permissions| !permissions.push)
        {
            return Err(forbidden(None, "permissions.push is false"));
        }
        // Only a classic token has scopes.
        if let Some(scopes) = answer.header("x-oauth-scopes") {
            let has = |wanted: &str| scopes.split(',').any(|scope| scope.trim() == wanted);
            if !has("repo") && !has("public_repo") {
                return Err(forbidden(
                    Some("the scope repo"),
                    &format!("its scopes are {scopes:?}"),
                ));
            }
        }
        Ok(())
    }

    async fn is_unprotected(
        &self,
        repo: &RepoName,
        branch: &BranchName,
    ) -> Result<(), GitHubError> {
        let path = self.path(
            repo,
            &format!("/branches/{}", encoded_whole(branch.as_str())),
        );
        if !self.get::<Branch>(path.clone()).await?.protected {
            return Ok(());
        }
        let path = format!("{path}/protection");
        let answer = self.api.get(path.clone(), Form::Json).await?;
        // A branch is also called protected when a ruleset applies to it; then there is none of this kind.
        if matches!(answer.status, StatusCode::NOT_FOUND | StatusCode::FORBIDDEN) {
            report::note(format_args!(
                "{branch} of {repo} is protected, and this token may not read how: whether it takes the commit is seen when it is made"
            ));
            return Ok(());
        }
        let found: Protection = answer.content(&format!("GET {path}"))?;
        // Whoever may read this administers the repository, and passes what is not enforced for administrators.
        let demands = [
            (found.lock_branch.enabled, "it is locked"),
            (
                found.required_pull_request_reviews.is_some() && found.enforce_admins.enabled,
                "it demands pull requests",
            ),
            (
                found.required_status_checks.is_some() && found.enforce_admins.enabled,
                "it demands status checks",
            ),
        ];
        if let Some((_, said)) = demands.into_iter().find(|(demanded, _)| *demanded) {
            return Err(GitHubError::Protected {
                branch: branch.to_string(),
                said: Said(said.to_owned()),
            });
        }
        if found.required_signatures.enabled && found.enforce_admins.enabled && !self.api.is_app() {
            return Err(unsigned(branch, "the branch's protection demands it"));
        }
        Ok(())
    }

    async fn is_unruled(&self, repo: &RepoName, branch: &BranchName) -> Result<(), GitHubError> {
        let name = encoded_whole(branch.as_str());
        let path = self.path(repo, &format!("/rules/branches/{name}?per_page=100"));
        let rules: Vec<Rule> = match self.look(path).await {
            Ok(rules) => rules.unwrap_or_default(),
            // Plans without rulesets answer so.
            Err(GitHubError::Forbidden { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        for rule in rules {
            let stops = STOPPING.contains(&rule.kind.as_str());
            let signs = rule.kind == SIGNATURES && !self.api.is_app();
            let (true, Some(id)) = (stops || signs, rule.ruleset_id) else {
                continue;
            };
            let path = self.path(repo, &format!("/rulesets/{id}"));
            let ruleset = match self.look::<Ruleset>(path).await {
                Ok(ruleset) => ruleset,
                Err(GitHubError::Forbidden { .. }) => None,
                Err(error) => return Err(error),
            };
            let bypass = ruleset
                .as_ref()
                .and_then(|r| r.current_user_can_bypass.as_deref());
            match bypass {
                Some("always" | "exempt") => {}
                None => report::note(format_args!(
                    "a ruleset has the rule {} for {branch} of {repo}, and this token may not read whom it lets pass: whether it takes the commit is seen when it is made",
                    rule.kind
                )),
                Some(_) => {
                    let name = ruleset.map(|ruleset| ruleset.name).unwrap_or_default();
                    let said = format!("the ruleset {name:?} has the rule {}", rule.kind);
                    return Err(match signs {
                        true => unsigned(branch, &said),
                        false => GitHubError::Rules {
                            branch: branch.to_string(),
                            said: Said(said),
                        },
                    });
                }
            }
        }
        Ok(())
    }
}

fn unsigned(branch: &BranchName, said: &str) -> GitHubError {
    GitHubError::Unsigned {
        branch: branch.to_string(),
        said: Said(said.to_owned()),
    }
}
