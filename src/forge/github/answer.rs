//! What GitHub answered, and what it means: read once, here.

use http::header::{DATE, LINK};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::{GitHubError, Said};

/// One answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: bytes::Bytes,
}

/// What a refusal means. GitHub marks most of them by its words alone, which are those of its servers as users have reported them; one
/// that is not known here is [`Meaning::Other`], and what follows from it is judged by what is there then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Too much was asked at once.
    SecondaryLimit,
    /// The repository is archived.
    Archived,
    /// Somebody else has written to the branch.
    NotFastForward,
    /// Only signed commits are taken.
    Unsigned,
    /// A ruleset forbids it.
    Rules,
    /// The branch is protected.
    Protected,
    /// Anything else.
    Other,
}

/// The body of every refusal (the schemas `basic-error` and `validation-error`).
#[derive(Default, Deserialize)]
#[serde(default)]
struct Refusal {
    message: String,
    documentation_url: String,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Where the answer goes on (<https://docs.github.com/en/rest/using-the-rest-api/using-pagination-in-the-rest-api>).
    pub(super) fn next_page(&self) -> Option<&str> {
        let links = self.header(LINK.as_str())?.split(',');
        let mut next = links.filter_map(|link| {
            let (address, relation) = link.split_once('>')?;
            let is_next = relation
                .split(';')
                .any(|part| part.trim() == "rel=\"next\"");
            is_next.then(|| address.trim().strip_prefix('<'))?
        });
        next.next()
    }

    /// The server's clock, in seconds since 1970.
    pub(super) fn date(&self) -> Option<u64> {
        let time = jiff::fmt::rfc2822::parse(self.header(DATE.as_str())?).ok()?;
        u64::try_from(time.timestamp().as_second()).ok()
    }

    fn refusal(&self) -> Refusal {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub(super) fn meaning(&self) -> Meaning {
        let Refusal {
            message,
            documentation_url,
        } = self.refusal();
        let text = message.to_ascii_lowercase();
        let says = |words: &str| text.contains(words);
        if says("secondary rate limit") || says("abuse detection") {
            Meaning::SecondaryLimit
        } else if says("was archived") {
            Meaning::Archived
        } else if says("not a fast forward") || says("not a fast-forward") {
            Meaning::NotFastForward
        } else if says("verified signature") || says("must be signed") {
            Meaning::Unsigned
        } else if says("rule violation") || documentation_url.contains("/rules") {
            Meaning::Rules
        } else if says("protected branch")
            || says("status check")
            || says("must be made through a pull request")
            || says("approving review")
            || documentation_url.contains("protected-branches")
        {
            Meaning::Protected
        } else {
            Meaning::Other
        }
    }

    /// GitHub's own words, on one line and not endless.
    pub(super) fn said(&self) -> Said {
        let message = self.refusal().message;
        let words: Vec<&str> = message.split_whitespace().collect();
        let text: String = words.join(" ").chars().take(500).collect();
        Said(match text.is_empty() {
            true => format!("nothing but {}", self.status),
            false => text,
        })
    }

    /// Its content, of an answer that is a success.
    pub(super) fn content<T: DeserializeOwned>(&self, request: &str) -> Result<T, GitHubError> {
        if !self.status.is_success() {
            return Err(self.failure(request, ""));
        }
        serde_json::from_slice(&self.body).map_err(|source| GitHubError::Content {
            request: request.to_owned(),
            source,
        })
    }

    /// Why it is no success. `branch` is the one that was to be written, or empty.
    pub(super) fn failure(&self, request: &str, branch: &str) -> GitHubError {
        let said = self.said();
        let branch = branch.to_owned();
        match (self.meaning(), self.status) {
            (_, StatusCode::UNAUTHORIZED) => return GitHubError::Unauthorized(said),
            (Meaning::Archived, _) => return GitHubError::ReadOnly { how: "archived" },
            (Meaning::Unsigned, _) => return GitHubError::Unsigned { branch, said },
            (Meaning::Rules, _) => return GitHubError::Rules { branch, said },
            (Meaning::Protected, _) => return GitHubError::Protected { branch, said },
            (_, StatusCode::NOT_FOUND) => return GitHubError::NotFound(said),
            _ => {}
        }
        if self.status != StatusCode::FORBIDDEN {
            return GitHubError::Answer {
                request: request.to_owned(),
                status: self.status,
                said,
            };
        }
        // `required; url=https://…`
        if let Some(sso) = self.header("x-github-sso") {
            let at = sso.split("url=").nth(1).map(str::to_owned);
            return GitHubError::SingleSignOn { at };
        }
        let scopes = self.header("x-accepted-oauth-scopes");
        let permissions = self.header("x-accepted-github-permissions");
        let needs = permissions.or(scopes).filter(|text| !text.is_empty());
        GitHubError::Forbidden {
            needs: needs.map(str::to_owned),
            said,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(status: u16, message: &str, documentation: &str) -> Meaning {
        let body = serde_json::json!({ "message": message, "documentation_url": documentation });
        let answer = Answer {
            status: StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::new(),
            body: body.to_string().into(),
        };
        answer.meaning()
    }

    #[test]
    fn what_users_have_reported_of_githubs_words_is_told_apart() {
        let protected = "https://docs.github.com/articles/about-protected-branches";
        let rules = "https://docs.github.com/rest/repos/rules";
        for (status, message, documentation, expected) in [
            (
                403,
                "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
                "",
                Meaning::SecondaryLimit,
            ),
            (
                403,
                "You have triggered an abuse detection mechanism.",
                "",
                Meaning::SecondaryLimit,
            ),
            (
                403,
                "Repository was archived so is read-only.",
                "",
                Meaning::Archived,
            ),
            (
                422,
                "Update is not a fast forward",
                "",
                Meaning::NotFastForward,
            ),
            (
                422,
                "Required status check \"build\" is expected.",
                protected,
                Meaning::Protected,
            ),
            (
                422,
                "Changes must be made through a pull request.",
                protected,
                Meaning::Protected,
            ),
            (
                422,
                "At least 1 approving review is required by reviewers with write access.",
                "",
                Meaning::Protected,
            ),
            (
                422,
                "Cannot update this protected ref.",
                protected,
                Meaning::Protected,
            ),
            (
                422,
                "Repository rule violations found\n\nChanges must be made through a pull request.",
                rules,
                Meaning::Rules,
            ),
            (
                422,
                "Repository rule violations found\n\nCommits must have verified signatures.",
                rules,
                Meaning::Unsigned,
            ),
            (422, "Reference does not exist", "", Meaning::Other),
            (
                403,
                "Resource not accessible by integration",
                "",
                Meaning::Other,
            ),
            (502, "", "", Meaning::Other),
        ] {
            assert_eq!(
                meaning(status, message, documentation),
                expected,
                "{message}"
            );
        }
    }

    #[test]
    fn an_answer_goes_on_where_its_link_says_so() {
        let next = "<https://api.example.com/r?page=2>; rel=\"next\"";
        let last = "<https://api.example.com/r?page=9>; rel=\"last\"";
        for (links, expected) in [
            (next.to_owned(), Some("https://api.example.com/r?page=2")),
            (
                format!("{last}, {next}"),
                Some("https://api.example.com/r?page=2"),
            ),
            (last.to_owned(), None),
            ("nothing of use".to_owned(), None),
        ] {
            let headers = HeaderMap::from_iter([(LINK, links.parse().unwrap())]);
            let answer = Answer {
                status: StatusCode::OK,
                headers,
                body: "[]".into(),
            };
            assert_eq!(answer.next_page(), expected, "{links}");
        }
    }

    #[test]
    fn a_page_in_place_of_an_answer_has_no_meaning_and_no_words() {
        let answer = Answer {
            status: StatusCode::BAD_GATEWAY,
            headers: HeaderMap::new(),
            body: "<html>Unicorn!</html>".into(),
        };
        assert_eq!(answer.meaning(), Meaning::Other);
        assert_eq!(
            answer.said().to_string(),
            "GitHub said: nothing but 502 Bad Gateway"
        );
    }
}
