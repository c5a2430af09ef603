//! For whom and why a run writes, as its commits and its lock say it.

use crate::git::trailers;
use crate::names::CommitSha;

use super::succession::Position;

/// For whom and why a run writes, as its commits and its lock say it. Whatever is unknown is left out.
#[derive(Clone, Debug, Default)]
pub struct Provenance {
    /// The commit that is deployed.
    pub deploy_commit: Option<CommitSha>,
    /// The build that asked for it.
    pub build: Option<String>,
    /// The pod, with its namespace.
    pub pod: Option<String>,
    /// The Job's UID.
    pub job: Option<String>,
}

impl Provenance {
    /// What a lock says of its holder.
    pub fn lock_info(&self) -> String {
        let members = [
            ("job", &self.job),
            ("pod", &self.pod),
            ("build", &self.build),
        ];
        let members = members
            .into_iter()
            .filter_map(|(name, value)| Some(format!("{name}: {}", value.as_ref()?)));
        members.collect::<Vec<_>>().join(", ")
    }

    /// The trailers of a commit that writes the state at `position`.
    pub(super) fn trailers(&self, position: &Position) -> String {
        let serial = position.serial.to_string();
        let commit = self.deploy_commit.as_ref().map(CommitSha::as_str);
        trailers::to_lines([
            ("Lineage", Some(position.lineage.as_str())),
            ("Serial", Some(serial.as_str())),
            ("Deploy-Commit", commit),
            ("Build", self.build.as_deref()),
            ("Pod", self.pod.as_deref()),
            ("Job", self.job.as_deref()),
        ])
    }
}
