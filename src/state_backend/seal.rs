//! Sealed states: JSON documents of sops, opened by the `sops` program (<https://getsops.io/docs/>).

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::child::{self, ChildError};

/// sops may have to ask a key service on the network.
const BOUND: Duration = Duration::from_secs(120);

/// A sealed state that cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The program is not there.
    #[error("it is encrypted with sops, and there is no sops on PATH: install sops 3.9 or newer")]
    NoSops,
    /// It could not be run.
    #[error("it is encrypted with sops, which could not be run")]
    Child(#[source] ChildError),
    /// It ran and refused.
    #[error(
        "it is encrypted with sops, which could not open it: hand the key over as SOPS_AGE_KEY or SOPS_AGE_KEY_FILE, or what its key service needs"
    )]
    Refused(#[source] SopsSaid),
    /// It was sealed as a blob, without its structure.
    #[error(
        "it was encrypted with sops as binary data, and states are read as JSON: decrypt it, and encrypt it with --input-type json --output-type json"
    )]
    Binary,
    /// It was sealed once, and what proves that nobody has changed it since is gone.
    #[error(
        "it carries sops' mark without its MAC, so it cannot be trusted: restore it from the history"
    )]
    NoMac,
}

/// The words of sops itself, on one line.
#[derive(Debug, thiserror::Error)]
#[error("sops said: {0}")]
pub struct SopsSaid(String);

/// Whether `document` is one that sops sealed: an object with sops' own member, an object that holds the document's MAC.
/// One without a MAC is an error.
pub fn is_sealed(document: &[u8]) -> Result<bool, SealError> {
    let Ok(Value::Object(document)) = serde_json::from_slice(document) else {
        return Ok(false);
    };
    let Some(Value::Object(sops)) = document.get("sops") else {
        return Ok(false);
    };
    match sops.get("mac") {
        Some(Value::String(mac)) if !mac.trim().is_empty() => Ok(true),
        _ => Err(SealError::NoMac),
    }
}

/// Opens a sealed document. The plaintext passes through a pipe and never lies on a disk.
pub async fn open(sealed: &[u8]) -> Result<Vec<u8>, SealError> {
    let sops = child::find_program(Path::new("sops")).ok_or(SealError::NoSops)?;
    let mut command = child::command(&sops);
    command.args([
        "decrypt",
        "--input-type",
        "json",
        "--output-type",
        "json",
        "/dev/stdin",
    ]);
    let output = child::capture(command, "sops", sealed, BOUND)
        .await
        .map_err(SealError::Child)?;
    if output.status.success() {
        if is_binary(&output.stdout) {
            return Err(SealError::Binary);
        }
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = said.split_whitespace().collect();
    Err(SealError::Refused(SopsSaid(said.join(" "))))
}

/// What sops makes of a file that it takes for no known format: one member `data` that holds all of it.
fn is_binary(opened: &[u8]) -> bool {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Binary {
        #[serde(rename = "data")]
        _data: String,
    }
    serde_json::from_slice::<Binary>(opened).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_with_a_mac_of_sops_counts_as_sealed() {
        let sealed =
            is_sealed(br#"{"version": "x", "sops": {"mac": "ENC[x]", "version": "3.13.3"}}"#);
        assert!(sealed.unwrap());
        for plain in [
            r#"{"version": 4, "outputs": {"sops": {"mac": 1}}}"#,
            r#"{"version": 4, "sops": "no"}"#,
            r#"{"version": 4, "sops": null}"#,
            r#"[{"sops": {}}]"#,
            "not JSON",
        ] {
            assert!(!is_sealed(plain.as_bytes()).unwrap(), "{plain}");
        }
    }

    #[test]
    fn a_document_with_the_mark_of_sops_and_no_mac_is_never_plain() {
        for mac in [
            "",
            r#""mac": null"#,
            r#""mac": 1"#,
            r#""mac": """#,
            r#""mac": {}"#,
        ] {
            let document = format!(r#"{{"version": 4, "sops": {{{mac}}}}}"#);
            let result = is_sealed(document.as_bytes());
            assert!(matches!(result, Err(SealError::NoMac)), "{document}");
        }
    }
}
