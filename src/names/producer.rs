//! Names of the registry of producers and of Jenkins.

use std::fmt;
use std::str::FromStr;

use super::{NameError, OwnerName, RepoName, as_text, foreign_character, name};

/// A producer's id, which also names its artifact: `<id>.yaml`. A small letter, then small letters, digits and `-`, at most 100.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProducerId(String);

/// A Jenkins job by its full name, with its folders: `<folder>/<job>`. Jenkins refuses the characters `?*/\%!@#$^&|<>[]:;`
/// in the name of an item, and a name that is `.` or `..`
/// (<https://javadoc.jenkins.io/jenkins/model/Jenkins.html#checkGoodName(java.lang.String)>); spaces may stand within it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobName(String);

/// A repository with its owner, `<owner>/<name>`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnedRepo {
    owner: OwnerName,
    name: RepoName,
}

name!(ProducerId, check_id);
name!(JobName, check_job);
as_text!(OwnedRepo);

impl ProducerId {
    /// The longest, in characters: with `.yaml` it is a file's name.
    const LONGEST: usize = 100;
}

fn check_id(text: &str) -> Result<String, NameError> {
    let part = if text.is_empty() {
        Some("being empty".to_owned())
    } else if let Some(part) = foreign_character(text, |c| {
        c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'
    }) {
        Some(part)
    } else if !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        Some(format!("the {:?} at its beginning", &text[..1]))
    } else if text.len() > ProducerId::LONGEST {
        Some(format!("its {} characters", text.len()))
    } else {
        None
    };
    match part {
        Some(part) => Err(NameError::new(
            "producer id",
            text,
            part,
            "it must be 1 to 100 of the characters a-z, 0-9 and -, beginning with a letter, since its artifact is named after it",
        )),
        None => Ok(text.to_owned()),
    }
}

/// What stands in no item's name, as Jenkins has it.
const NOT_IN_ITEMS: &str = "?*\\%!@#$^&|<>[]:;";

fn check_job(text: &str) -> Result<String, NameError> {
    let part = if text.is_empty() {
        Some("being empty".to_owned())
    } else if let Some(part) =
        foreign_character(text, |c| !c.is_control() && !NOT_IN_ITEMS.contains(c))
    {
        Some(part)
    } else {
        text.split('/').find_map(|item| match item {
            "" => Some("an empty piece between \"/\"".to_owned()),
            "." | ".." => Some(format!("the piece {item:?}")),
            _ if item.trim() != item => Some(format!("the space at an end of {item:?}")),
            _ => None,
        })
    };
    match part {
        Some(part) => Err(NameError::new(
            "Jenkins job",
            text,
            part,
            "it must be the job's full name, with its folders before it and \"/\" between, as in \"AaC/ShopDeploy\"",
        )),
        None => Ok(text.to_owned()),
    }
}

impl JobName {
    /// The folders and the job, from the top down.
    pub fn items(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }
}

impl OwnedRepo {
    /// The account.
    pub fn owner(&self) -> &OwnerName {
        &self.owner
    }

    /// The repository.
    pub fn name(&self) -> &RepoName {
        &self.name
    }
}

impl fmt::Display for OwnedRepo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

impl FromStr for OwnedRepo {
    type Err = NameError;

    fn from_str(text: &str) -> Result<OwnedRepo, NameError> {
        let parsed = text
            .split_once('/')
            .map(|(owner, name)| (owner.parse(), name.parse()));
        match parsed {
            Some((Ok(owner), Ok(name))) => Ok(OwnedRepo { owner, name }),
            Some((Err(error), _) | (_, Err(error))) => Err(error),
            None => Err(NameError::new(
                "repository",
                text,
                "the missing \"/\"".to_owned(),
                "it must be <owner>/<name>, without \".git\", as in \"example/ShopDeploy\"",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_small_letters_digits_and_hyphens_behind_a_letter() {
        for good in ["a", "shop-deploy", "a2"] {
            assert_eq!(good.parse::<ProducerId>().unwrap().as_str(), good);
        }
        for bad in ["", "2a", "-a", "Shop", "shop_deploy", "a b", "a/b", "é"] {
            assert!(bad.parse::<ProducerId>().is_err(), "{bad}");
        }
        assert!("a".repeat(101).parse::<ProducerId>().is_err());
    }

    #[test]
    fn a_job_has_folders_and_may_have_spaces_within() {
        let job: JobName = "AaC/Home Assistant Fleet".parse().unwrap();
        assert_eq!(
            job.items().collect::<Vec<_>>(),
            ["AaC", "Home Assistant Fleet"]
        );
        for bad in [
            "", "/a", "a/", "a//b", "a/..", " a", "a /b", "a?b", "a\nb", "a%2fb", "a:b",
        ] {
            assert!(bad.parse::<JobName>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_repository_has_its_owner_before_it() {
        let repo: OwnedRepo = "example/ShopDeploy".parse().unwrap();
        assert_eq!(
            (repo.owner().as_str(), repo.name().as_str()),
            ("example", "ShopDeploy")
        );
        for bad in [
            "ShopDeploy",
            "example/Shop.git",
            "a/b/c",
            "/b",
            "a/",
            "https://github.com/a/b",
        ] {
            assert!(bad.parse::<OwnedRepo>().is_err(), "{bad}");
        }
    }
}
