//! A state that could not be written to its place: kept on a branch of its own, else in the log, with the commands that bring
//! it back.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::names::{RepoUrl, StateKey};
use crate::state_backend::session::Session;

use super::PresyncError;
use super::log::Log;

/// The characters of a line of a printed state.
const LINE: usize = 120;

/// Puts the state on its rescue branch, else into the log. The lock stays, where it is still ours: nobody may apply against
/// the old state.
pub(super) async fn bring_to_safety(
    session: &mut Session,
    key: &StateKey,
    states: &RepoUrl,
    log: &mut Log,
) -> PresyncError {
    let id = session
        .held()
        .map_or_else(String::new, |lock| lock.id().to_string());
    let sealed = session.store_mut().seals();
    let open = if sealed {
        " | sops decrypt --input-type json --output-type json /dev/stdin"
    } else {
        ""
    };
    let (backend, stays) = if session.lock_is_lost().await {
        let backend = format!("presync backend {key} -- terraform");
        let stays = format!(
            "the lock of {key} was released while this run held it: look whether another run has worked on the state since, and \
             bring this one back only if it is what is true"
        );
        (backend, stays)
    } else {
        // The lock is taken over, not given back first: nobody comes in between.
        let backend = format!("presync backend {key} --allow-unlock {id} -- terraform");
        let stays = format!("{key} stays locked, so that nobody applies against the old one");
        (backend, stays)
    };
    let steps = format!("{backend} init && {backend} state push rescued.tfstate");
    match session.rescue().await {
        Ok(Some(branch)) => {
            log.say(format_args!(
                "the state could not be written to {key} and is kept on the branch {branch} of the state repository; {stays}"
            ));
            log.say(format_args!(
                "to bring it back, in an empty folder: git init -q && git fetch {states} {branch} && git show FETCH_HEAD:{key}{open} \
                 >rescued.tfstate && {steps}; then remove the branch: git push {states} --delete {branch}"
            ));
            PresyncError::Rescued {
                key: key.clone(),
                branch,
            }
        }
        other => {
            if let Err(error) = &other {
                log.say(crate::report::one_line(error));
            }
            let state = session.unsaved().unwrap_or_default().to_vec();
            // What cannot be sealed now must not be lost either.
            let (document, sealed) = match session.store_mut().as_kept(key, &state).await {
                Ok(document) => (document, sealed),
                Err(error) => {
                    log.say(crate::report::one_line(&error));
                    (state, false)
                }
            };
            let how = if sealed { "encrypted" } else { "NOT encrypted" };
            let open = if sealed { open } else { "" };
            log.say(format_args!(
                "the state could not be written anywhere in the state repository; it follows, {how}, and {key} may still be locked"
            ));
            log.state(&packed(&document));
            log.say(format_args!(
                "to bring it back, in an empty folder, with this log in the file THIS_LOG: sed -n 's/^presync-state: //p' THIS_LOG | base64 -d | gunzip{open} \
                 >rescued.tfstate && {steps}"
            ));
            PresyncError::Printed { key: key.clone() }
        }
    }
}

/// gzip and base64, in lines.
fn packed(document: &[u8]) -> Vec<String> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail; if it did, the document itself is as good.
    let bytes = match packed.write_all(document).and_then(|()| packed.finish()) {
        Ok(bytes) => bytes,
        Err(_) => document.to_vec(),
    };
    let text = STANDARD.encode(bytes);
    (0..text.len())
        .step_by(LINE)
        .filter_map(|start| text.get(start..(start + LINE).min(text.len())))
        .map(str::to_owned)
        .collect()
}
