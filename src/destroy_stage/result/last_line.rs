//! The last line on standard error, for a tired reader: what was done, and what is next.

use crate::preview::objections::Left;
use crate::report::Outcome;

use super::super::Step;
use super::{DestroyReport, Progress};

impl DestroyReport {
    pub(in crate::destroy_stage) fn last_line(&self) -> String {
        match self.step {
            Step::Check => self.last_line_of_check(),
            Step::Preview => self.last_line_of_preview(),
            // Until it is confirmed it is a preview.
            Step::All if !self.progress.launched && self.outcome != Outcome::NotConfirmed => {
                self.last_line_of_preview()
            }
            Step::Destroy | Step::RemoveConfig | Step::All => self.last_line_of_destroy(),
        }
    }

    fn last_line_of_destroy(&self) -> String {
        let target = &self.wanted.target;
        let took = format!("{:.1} s", self.took.as_secs_f64());
        let Progress {
            destroyed,
            was_destroyed,
            launched,
            config_removed,
            ..
        } = &self.progress;
        if *config_removed {
            return format!(
                "Destroyed: all of {target}, its state and its config folder are removed, in {took}. Next: nothing."
            );
        }
        match (destroyed, self.step) {
            (Some(_), _) if *was_destroyed => format!(
                "Destroyed: nothing by this run; {target} was destroyed before by this record, in {took}. Next: {}",
                self.wanted.command(self.or_all(Step::RemoveConfig))
            ),
            (Some(done), _) => format!(
                "Destroyed: all of {target}, {} object(s) destroyed and {} forgotten by this run, its state is removed, in {took}. Next: {}",
                done.destroyed,
                done.forgotten,
                self.wanted
                    .command(self.or_all(match (self.step, self.outcome) {
                        // The record does not say so: this step, once more, writes it.
                        (Step::Destroy, outcome) if outcome != Outcome::Done => Step::Destroy,
                        _ => Step::RemoveConfig,
                    }))
            ),
            (None, Step::RemoveConfig) => format!(
                "Removed: nothing of {target}, in {took}. Next: mend what is named above, and run it again."
            ),
            (None, _) if self.outcome == Outcome::NotConfirmed => format!(
                "Destroyed: nothing of {target}, in {took}. Next: nothing, or the same command again and {target} typed when it asks."
            ),
            (None, _) if !launched && self.was_stopped() => {
                format!("Destroyed: nothing of {target}, stopped after {took}. Next: run it again.")
            }
            (None, _) if self.outcome == Outcome::Locked => format!(
                "Destroyed: nothing of {target}, whose state is locked, in {took}. Next: when the lock is released, {}",
                self.wanted.command(self.or_all(Step::Destroy))
            ),
            (None, _) if !launched => format!(
                "Destroyed: nothing of {target}, in {took}. Next: mend what is named above, and run it again."
            ),
            // What was taken stands in the log, and in the state what is left.
            (None, _) => format!(
                "Destroyed: not all of {target}, as the log above says, in {took}. Next: see to what is named above, and run it again, \
                 which goes on with what is left: {}",
                self.wanted.command(self.or_all(Step::Destroy))
            ),
        }
    }

    fn was_stopped(&self) -> bool {
        matches!(self.outcome, Outcome::Interrupted | Outcome::Terminated)
    }

    /// This step, where a record is handed on to it; all of them once more, where none is.
    fn or_all(&self, step: Step) -> Step {
        match self.wanted.record {
            Some(_) => step,
            None => Step::All,
        }
    }

    fn last_line_of_preview(&self) -> String {
        let target = &self.wanted.target;
        let took = format!("{:.1} s", self.took.as_secs_f64());
        let Progress { preview, check, .. } = &self.progress;
        match (preview, self.outcome) {
            (Some(preview), Outcome::Done) => {
                let what = match preview.left {
                    Left::State => format!(
                        "a destroy of {target} takes {} of {} object(s) in the state, {} with data",
                        preview.destroyed,
                        preview.objects,
                        preview.data.len()
                    ),
                    Left::Config => {
                        format!("of {target} the config folder alone is left to remove")
                    }
                    Left::Nothing => format!("of {target} nothing is left to destroy or remove"),
                };
                let next = match (&self.wanted.record, preview.left) {
                    (_, Left::Nothing) => "nothing.".to_owned(),
                    (Some(_), _) => format!(
                        "read it; until {} this confirms it: {}",
                        preview.expires,
                        self.wanted.command(Step::Destroy)
                    ),
                    (None, _) => format!(
                        "read it; this asks for a confirmation of it: {}",
                        self.wanted.command(Step::All)
                    ),
                };
                format!("Previewed: {what}, in {took}; nothing was changed. Next: {next}")
            }
            (Some(_), Outcome::Refused) => format!(
                "Previewed: {target}, in {took}, and something speaks against it; nothing was changed. Next: see to what is named \
                 above, and run it again."
            ),
            (None, Outcome::Refused) if check.as_ref().is_some_and(|check| !check.cleared) => {
                self.last_line_of_check()
            }
            (_, Outcome::Interrupted | Outcome::Terminated) => format!(
                "Previewed: nothing of {target}, stopped after {took}; nothing was changed. Next: run it again."
            ),
            _ => format!(
                "Previewed: nothing of {target}, failed after {took}; nothing was changed. Next: mend what is named above, and run \
                 it again."
            ),
        }
    }

    fn last_line_of_check(&self) -> String {
        let target = &self.wanted.target;
        let took = format!("{:.1} s", self.took.as_secs_f64());
        match (&self.progress.check, self.outcome) {
            (Some(check), Outcome::Done) => format!(
                "Checked: {target} is deployed by no registry entry and by none of {} live Application(s), in {took}; nothing was \
                 changed. Next: {}",
                check.looked_at.applications,
                self.wanted.command(Step::Preview)
            ),
            (Some(check), Outcome::Refused) => {
                let (is, next) = if check.entries.is_empty() && check.matching.is_empty() {
                    ("may still be", "prove or prune what is named above")
                } else {
                    ("is still", "undeploy it")
                };
                format!(
                    "Checked: {target} {is} deployed, in {took}; nothing was changed. Next: {next}, and run it again."
                )
            }
            (_, Outcome::Interrupted | Outcome::Terminated) => format!(
                "Checked: nothing of {target}, stopped after {took}; nothing was changed. Next: run it again."
            ),
            _ => format!(
                "Checked: nothing of {target}, failed after {took}; nothing was changed. Next: mend what is named above, and run it \
                 again."
            ),
        }
    }
}
