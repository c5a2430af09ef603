//! Which state may follow on which: the same lineage, a higher serial, and on what the run has read.

use serde::Deserialize;

use crate::names::StateKey;

use super::store::{Refusal, Stored};

/// Lineage and serial, of whatever has them: plain states, and those that OpenTofu encrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Position {
    #[serde(default)]
    pub(super) lineage: String,
    pub(super) serial: u64,
}

impl Position {
    /// Reads them of a state.
    pub(super) fn read(state: &[u8]) -> Result<Position, serde_json::Error> {
        // An array would do for the members in their order.
        let document: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(state)?;
        serde_json::from_value(document.into())
    }
}

/// Whether a state at `position` may follow on what is kept.
pub(super) fn may_follow(
    stored: Option<&Stored>,
    position: &Position,
    key: &StateKey,
) -> Result<(), Refusal> {
    let Some(stored) = stored else {
        return Ok(());
    };
    let before = Position::read(&stored.state).map_err(|error| {
        Refusal(format!(
            "what is kept there is no state ({error}), and only presync backend {key} --allow-overwrite may replace it"
        ))
    })?;
    let permitted_by = format!("presync backend {key} --allow-overwrite -- terraform … permits it");
    if before.lineage != position.lineage {
        return Err(Refusal(format!(
            "it has the lineage {:?}, and what is kept there has {:?}: they are two different states; {permitted_by}",
            position.lineage, before.lineage
        )));
    }
    // A holder that is gone may have left a push on its way. Terraform counts on after a refusal, so the serial alone would
    // let it through.
    if stored.unseen {
        return Err(Refusal(format!(
            "what is kept there, of the serial {}, was written since this run has read it; {permitted_by}",
            before.serial
        )));
    }
    if position.serial < before.serial {
        return Err(Refusal(format!(
            "its serial {} is lower than {}, that of what is kept there; {permitted_by}",
            position.serial, before.serial
        )));
    }
    if position.serial == before.serial {
        return Err(Refusal(format!(
            "it has the serial {}, as what is kept there, and another content; {permitted_by}",
            position.serial
        )));
    }
    Ok(())
}
