//! The record of a preview: what a confirmation of it binds, and what was known when it was made. It holds no secret, and one
//! that was tampered with can only be refused: the destroying run finds out all of it again.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::guard::{Cleared, Unproven};
use crate::preview::Preview;
use crate::preview::objections::{Allowance, Namespaced};
use crate::report::{self, OutputError};

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
        Record {
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
        }
    }

    /// Writes it to a file, whole or not at all.
    pub fn write(&self, file: &Path) -> Result<(), OutputError> {
        report::write_result(file, self)
    }
}
