//! What a pipeline asks before a destroy, as one text: the confirmation itself is the record, so the text names its digest.

use super::objections::{Left, left};
use super::reading::{counts, plain};
use super::{Data, Preview};

/// How many objects with data are named one by one.
const NAMED: usize = 20;

/// The question, nothing where nothing is left to destroy or remove. `expires` is until when it may be answered.
pub fn question(preview: &Preview, expires: &str) -> Option<String> {
    let Preview { bound, told, .. } = preview;
    let app = match &bound.path {
        None => bound.repo.to_string(),
        Some(path) => format!("{}/{path}", bound.repo),
    };
    let ask = format!(
        "Destroy what the plan above shows for {} of {app}?\n",
        bound.stage
    );
    let mut lines = vec![ask];
    match left(preview) {
        Left::Nothing => return None,
        Left::Config => {
            let key = &bound.state.key;
            lines.push(format!("There is no state at {key}."));
        }
        Left::State => {
            lines.push(format!("{}.", counts(bound, told)));
            lines.extend(of_data(&told.data));
            lines.push(format!(
                "{} goes from the state repository.",
                bound.state.key
            ));
        }
    }
    match told.config.files.len() {
        0 => lines.push(format!("{}/ is gone already.", told.config.path)),
        files => lines.push(format!(
            "{}/ with {files} file(s) goes from {}'s main.",
            told.config.path, bound.repo
        )),
    }
    lines.push(format!(
        "Digest {}, to be confirmed until {expires}.",
        bound.digest()
    ));
    Some(lines.join("\n"))
}

fn of_data(data: &[Data]) -> Vec<String> {
    if data.is_empty() {
        return vec!["Nothing of it is known to hold data.".to_owned()];
    }
    let mut lines = vec!["Data that is lost for good:".to_owned()];
    for Data {
        address,
        what,
        identity,
    } in data.iter().take(NAMED)
    {
        let identity = identity
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let identity: Vec<String> = identity.collect();
        let line = format!("- {what} {address} {}", identity.join(", "));
        lines.push(plain(line.trim_end()));
    }
    if let Some(more @ 1..) = data.len().checked_sub(NAMED) {
        lines.push(format!("- and {more} more"));
    }
    lines
}
