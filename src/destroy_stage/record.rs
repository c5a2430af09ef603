//! The record of a preview: what a confirmation of it binds, and what was known when it was made. It holds no secret. Its checksum
//! tells a file that was cut short or edited; who may write it confirms by it. What is destroyed the destroying run finds out again, and
//! which folder is removed follows from the target.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::guard::{Cleared, Unproven};
use crate::names::Target;
use crate::preview::Preview;
use crate::preview::objections::{Allowance, Namespaced};
use crate::report::{self, OutputError};
use crate::transport::record::{DestroyRecord, digest};

/// The version of this shape.
const VERSION: u32 = 1;
/// How long a preview may be confirmed, in seconds.
const LIFE: i64 = 60 * 60;

/// The record file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    version: u32,
    program: String,
    /// What is typed to confirm it.
    pub target: String,
    /// Of what [`Preview::bound`] binds.
    pub digest: String,
    /// The image that made the preview, by its digest; none where it was no pod.
    pub image: Option<String>,
    /// When it was made, as RFC 3339.
    pub created: String,
    /// Until when it may be confirmed.
    pub expires: String,
    /// Who asked for it.
    pub requested_by: String,
    /// What the guard looked at.
    pub not_in_use: NotInUse,
    /// What a flag lifted.
    pub allowed: BTreeSet<Allowance>,
    /// The namespaces of forgotten objects, as they were.
    pub namespaces: Vec<(String, Namespaced)>,
    /// What presync found.
    pub preview: Preview,
    /// What came of it, once it was destroyed.
    pub done: Option<Done>,
    /// Of all the rest.
    checksum: String,
}

/// A destroy that has come to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Done {
    /// When, as RFC 3339.
    pub at: String,
    /// What presync did.
    pub record: DestroyRecord,
}

/// A record that confirms nothing.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It could not be read.
    #[error("the record {} could not be read", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// It is none.
    #[error("{} is not a record of a preview that this version reads", file.display())]
    Content {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// It was tampered with, or cut short.
    #[error(
        "the record was changed or cut short since it was written, so it confirms nothing: preview again"
    )]
    Digest,
    /// It is another stage's.
    #[error(
        "the record is of {of}, and {wanted} was to be destroyed: hand over the record of its own preview"
    )]
    OtherTarget {
        /// Whose it is.
        of: String,
        /// What was asked for.
        wanted: String,
    },
    /// It is too old.
    #[error("the record could be confirmed until {expires}, which is over: preview again")]
    Expired {
        /// Until when.
        expires: String,
    },
    /// What it tells of is too long ago.
    #[error(
        "the record tells of a destroy that ended at {at}, more than an hour ago, and the stage may have come back since: preview again, which shows what is left"
    )]
    Stale {
        /// When it ended.
        at: String,
    },
    /// Nothing was destroyed by it yet.
    #[error(
        "the record says of no destroy that it completed, so the config folder stays: run destroy with it first"
    )]
    NotDone,
}

/// What proves that the stage is not in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotInUse {
    /// How many Argo CDs were asked.
    pub instances: usize,
    /// How many Applications were looked at.
    pub applications: usize,
    /// Applications that somebody vouched for, with what spoke against them.
    pub lifted: Vec<Lifted>,
}

/// An Application that somebody vouched for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lifted {
    /// `<namespace>/<name>`.
    pub application: String,
    /// Why it was not proven.
    pub reasons: Vec<String>,
}

impl From<&Cleared> for NotInUse {
    fn from(cleared: &Cleared) -> NotInUse {
        let looked_at = cleared.looked_at();
        let lifted = |unproven: &Unproven| Lifted {
            application: unproven.found.application.clone(),
            reasons: unproven.reasons.clone(),
        };
        NotInUse {
            instances: looked_at.instances,
            applications: looked_at.applications,
            lifted: cleared.lifted().iter().map(lifted).collect(),
        }
    }
}

/// What a record is made of beside the preview.
pub struct Made {
    /// Who asks.
    pub requested_by: String,
    /// The image that made the preview.
    pub image: Option<String>,
    /// What the guard looked at.
    pub not_in_use: NotInUse,
    /// What a flag lifted.
    pub allowed: BTreeSet<Allowance>,
    /// The namespaces of forgotten objects.
    pub namespaces: Vec<(String, Namespaced)>,
}

impl Record {
    /// Makes it of a preview, at this time.
    pub fn new(program: &str, preview: Preview, made: Made, now: jiff::Timestamp) -> Record {
        let now = now.round(jiff::Unit::Second).unwrap_or(now);
        let expires = now
            .checked_add(jiff::SignedDuration::from_secs(LIFE))
            .unwrap_or(now);
        let mut record = Record {
            version: VERSION,
            program: program.to_owned(),
            target: preview.bound.target(),
            digest: preview.bound.digest(),
            image: made.image,
            created: now.to_string(),
            expires: expires.to_string(),
            requested_by: made.requested_by,
            not_in_use: made.not_in_use,
            allowed: made.allowed,
            namespaces: made.namespaces,
            preview,
            done: None,
            checksum: String::new(),
        };
        record.checksum = record.sum();
        record
    }

    /// The checksum of all the rest.
    fn sum(&self) -> String {
        let rest = Record {
            checksum: String::new(),
            ..self.clone()
        };
        // Names, numbers and texts: such a struct always has a JSON form.
        digest(&serde_json::to_vec(&rest).unwrap_or_default())
    }

    /// Reads a record file.
    pub fn read(file: &Path) -> Result<Record, RecordError> {
        let text = std::fs::read(file).map_err(|source| RecordError::Read {
            file: file.to_owned(),
            source,
        })?;
        serde_json::from_slice(&text).map_err(|source| RecordError::Content {
            file: file.to_owned(),
            source,
        })
    }

    /// Refuses to destroy this target by it, unless it is its own and not too old.
    pub fn fits(&self, target: &Target, now: jiff::Timestamp) -> Result<(), RecordError> {
        self.is_of(target)?;
        let expires: Option<jiff::Timestamp> = self.expires.parse().ok();
        if expires.is_none_or(|expires| expires < now) {
            return Err(RecordError::Expired {
                expires: self.expires.clone(),
            });
        }
        Ok(())
    }

    /// Refuses to remove this target's config folder by it, unless it is its own and tells of a destroy that came to its end.
    pub fn fits_done(&self, target: &Target, now: jiff::Timestamp) -> Result<(), RecordError> {
        self.is_of(target)?;
        let done = self.done.as_ref();
        let Some(done) = done.filter(|done| done.record.digest == self.digest) else {
            return Err(RecordError::NotDone);
        };
        // The stage may have come back since.
        let ended: Option<jiff::Timestamp> = done.at.parse().ok();
        let life = jiff::SignedDuration::from_secs(LIFE);
        if ended.is_none_or(|ended| now.duration_since(ended) > life) {
            return Err(RecordError::Stale {
                at: done.at.clone(),
            });
        }
        Ok(())
    }

    fn is_of(&self, target: &Target) -> Result<(), RecordError> {
        let bound = &self.preview.bound;
        if self.version != VERSION
            || self.checksum != self.sum()
            || bound.digest() != self.digest
            || bound.target() != self.target
        {
            return Err(RecordError::Digest);
        }
        if self.target != target.to_string() {
            return Err(RecordError::OtherTarget {
                of: self.target.clone(),
                wanted: target.to_string(),
            });
        }
        Ok(())
    }

    /// Notes that what it confirms is destroyed.
    pub fn is_done(&mut self, record: DestroyRecord, now: jiff::Timestamp) {
        let now = now.round(jiff::Unit::Second).unwrap_or(now);
        self.done = Some(Done {
            at: now.to_string(),
            record,
        });
        self.checksum = self.sum();
    }

    /// Writes it to a file, whole or not at all.
    pub fn write(&self, file: &Path) -> Result<(), OutputError> {
        report::write_result(file, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terraform::values::Values;

    fn record(now: &str) -> Record {
        let preview = serde_json::from_str(
            r#"{"version": 1, "revision": "0123456789012345678901234567890123456789",
                "bound": {"repo": "ShopDeploy", "path": null, "stage": "prd", "namespace": null, "trees": {},
                    "state": {"key": "argocd/ShopDeploy/prd/terraform.tfstate", "position": null},
                    "versions": {"stagewright": "1", "terraform": "Terraform 1.11.4", "providers": {}},
                    "changes": [], "outputs": [], "gone": [], "forgotten": []},
                "told": {"written": null, "data": [], "webhooks": [], "lifted": [], "provisioners": [], "all_gone": [],
                    "warnings": [], "state_folder": {"path": "", "beside": [], "proof": null, "near": []},
                    "config": {"path": "config/prd", "files": [], "last_seen": null}, "objects": 0, "without_value": []}}"#,
        );
        let made = Made {
            requested_by: "me".to_owned(),
            image: None,
            not_in_use: NotInUse {
                instances: 1,
                applications: 2,
                lifted: Vec::new(),
            },
            allowed: BTreeSet::new(),
            namespaces: Vec::new(),
        };
        Record::new("it", preview.unwrap(), made, now.parse().unwrap())
    }

    fn at(time: &str) -> jiff::Timestamp {
        time.parse().unwrap()
    }

    #[test]
    fn a_record_confirms_its_own_target_for_an_hour() {
        let target = "ShopDeploy/prd".parse().unwrap();
        let record = record("2026-01-01T10:00:00Z");
        record.fits(&target, at("2026-01-01T10:59:59Z")).unwrap();
        let late = record.fits(&target, at("2026-01-01T11:00:01Z"));
        assert!(matches!(late, Err(RecordError::Expired { .. })), "{late:?}");
        let other = record.fits(
            &"ShopDeploy/dev".parse().unwrap(),
            at("2026-01-01T10:00:00Z"),
        );
        assert!(
            matches!(other, Err(RecordError::OtherTarget { .. })),
            "{other:?}"
        );
    }

    #[test]
    fn only_what_it_was_written_with_is_a_record_and_only_a_destroy_that_ended_lets_the_folder_go()
    {
        let target = "ShopDeploy/prd".parse().unwrap();
        let mut record = record("2026-01-01T10:00:00Z");
        assert!(matches!(
            record.fits_done(&target, at("2026-01-01T11:00:00Z")),
            Err(RecordError::NotDone)
        ));
        let done = DestroyRecord {
            version: 1,
            revision: "0123456789012345678901234567890123456789".parse().unwrap(),
            key: "argocd/ShopDeploy/prd/terraform.tfstate".parse().unwrap(),
            digest: record.digest.clone(),
            destroyed: 1,
            forgotten: 0,
            removed: None,
            values: Values::default(),
        };
        record.is_done(done, at("2026-01-01T10:30:00Z"));
        record
            .fits_done(&target, at("2026-01-01T11:29:59Z"))
            .unwrap();
        assert!(matches!(
            record.fits_done(&target, at("2026-01-01T11:30:01Z")),
            Err(RecordError::Stale { .. })
        ));
        record.expires = "2036-01-01T00:00:00Z".to_owned();
        assert!(matches!(
            record.fits_done(&target, at("2026-01-01T11:00:00Z")),
            Err(RecordError::Digest)
        ));
    }
}
