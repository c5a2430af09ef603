//! The head of a Terraform state: which format, by which version, which lineage and serial.

use std::str::FromStr;

use serde::Deserialize;

/// The state format that Terraform since 0.12 and OpenTofu write.
const FORMAT: u64 = 4;

/// A state that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Not JSON, or not that of a state.
    #[error(
        "it is not the JSON of a Terraform state: restore it from the history of the state repository"
    )]
    NotAState(#[source] serde_json::Error),
    /// Another format.
    #[error(
        "it has state format {found}, while only format {FORMAT} is read: {}",
        if *found < FORMAT { "apply it once with Terraform 0.12 or newer, which writes format 4" } else { "use a newer stagewright and Terraform" }
    )]
    Format {
        /// The format that it names.
        found: u64,
    },
    /// Written by nobody knows what.
    #[error(
        "it names {found:?} as the version that wrote it, which is none: restore it from the history of the state repository"
    )]
    WrittenBy {
        /// What stands in place of the version.
        found: String,
        /// What is wrong with it.
        #[source]
        source: VersionError,
    },
    /// Written by a newer program.
    #[error(
        "it was written by version {written}, which is newer than the {running} that runs here: plan with version {written} or newer"
    )]
    Newer {
        /// The version that wrote it.
        written: Version,
        /// The program that runs, with its version.
        running: String,
    },
}

/// What every state says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateHead {
    /// The version of the program that wrote it.
    pub terraform_version: Option<Version>,
    /// Made with the state, kept for its life.
    pub lineage: String,
    /// Raised by every write.
    pub serial: u64,
}

#[derive(Deserialize)]
struct StateJson {
    version: u64,
    #[serde(default)]
    terraform_version: String,
    #[serde(default)]
    lineage: String,
    #[serde(default)]
    serial: u64,
}

impl StateHead {
    /// Reads the head of a state.
    pub fn read(state: &[u8]) -> Result<StateHead, StateError> {
        let json: StateJson = serde_json::from_slice(state).map_err(StateError::NotAState)?;
        if json.version != FORMAT {
            return Err(StateError::Format {
                found: json.version,
            });
        }
        let terraform_version = match json.terraform_version.as_str() {
            "" => None,
            text => Some(text.parse().map_err(|source| StateError::WrittenBy {
                found: text.to_owned(),
                source,
            })?),
        };
        Ok(StateHead {
            terraform_version,
            lineage: json.lineage,
            serial: json.serial,
        })
    }

    /// Refuses a state that a newer program wrote: Terraform itself would read it, and an apply write it back as its own,
    /// older version.
    pub fn not_newer_than(&self, running: &Version, program: &str) -> Result<(), StateError> {
        match &self.terraform_version {
            Some(written) if written > running => Err(StateError::Newer {
                written: written.clone(),
                running: program.to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

/// A version of Terraform or OpenTofu; what follows a `-` (a pre-release) is left out of comparisons.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    major: u32,
    minor: u32,
    patch: u32,
}

impl Version {
    /// `major.minor.patch`.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Version {
        Version {
            major,
            minor,
            patch,
        }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Not three numbers with dots between.
#[derive(Debug, thiserror::Error)]
#[error("not a version: three numbers with dots between are expected")]
pub struct VersionError;

impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Version, VersionError> {
        let release = text.split(['-', '+']).next().unwrap_or_default();
        let mut numbers = release.split('.').map(str::parse::<u32>);
        match (
            numbers.next(),
            numbers.next(),
            numbers.next(),
            numbers.next(),
        ) {
            (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch)), None) => {
                Ok(Version::new(major, minor, patch))
            }
            _ => Err(VersionError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_states_head_is_read_and_its_values_are_not_needed() {
        let head = StateHead::read(
            br#"{"version":4,"terraform_version":"1.11.4","serial":7,"lineage":"ab","resources":[{"odd":1}]}"#,
        )
        .unwrap();
        assert_eq!((head.lineage.as_str(), head.serial), ("ab", 7));
        assert_eq!(head.terraform_version, Some(Version::new(1, 11, 4)));
    }

    #[test]
    fn what_is_not_a_state_of_this_format_is_refused() {
        for text in ["", "x", "[]", "{}", r#"{"version":"4"}"#] {
            let result = StateHead::read(text.as_bytes());
            assert!(matches!(result, Err(StateError::NotAState(_))), "{text}");
        }
        let newer = StateHead::read(br#"{"version":5}"#);
        assert!(matches!(newer, Err(StateError::Format { found: 5 })));
    }

    #[test]
    fn a_version_that_is_none_is_refused_and_a_missing_or_empty_one_is_unknown() {
        for written in ["x", "1.11", "1.11.4.1", " ", "v1.11.4", "99999999999.0.0"] {
            let json = format!(r#"{{"version":4,"terraform_version":"{written}"}}"#);
            let result = StateHead::read(json.as_bytes());
            assert!(
                matches!(&result, Err(StateError::WrittenBy { found, .. }) if found == written),
                "{written}"
            );
        }
        for json in [
            r#"{"version":4}"#,
            r#"{"version":4,"terraform_version":""}"#,
        ] {
            let head = StateHead::read(json.as_bytes()).unwrap();
            assert_eq!(head.terraform_version, None);
        }
    }

    #[test]
    fn a_state_of_a_newer_program_is_refused_and_one_of_the_same_or_an_older_is_not() {
        let running = Version::new(1, 11, 4);
        for (written, refused) in [
            ("1.11.5", true),
            ("1.12.0-beta1", true),
            ("2.0.0", true),
            ("1.11.4", false),
            ("0.13.9", false),
            ("", false),
        ] {
            let json = format!(r#"{{"version":4,"terraform_version":"{written}"}}"#);
            let head = StateHead::read(json.as_bytes()).unwrap();
            assert_eq!(
                head.not_newer_than(&running, "Terraform 1.11.4").is_err(),
                refused,
                "{written}"
            );
        }
    }
}
