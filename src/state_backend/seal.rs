//! Sealed states: JSON documents of sops, opened and made by the `sops` program (<https://getsops.io/docs/>).

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Number, Value};

use crate::child::{self, ChildError};

use super::recipients::Recipients;
use super::same::{self, Difference};

/// sops may have to ask a key service on the network.
const BOUND: Duration = Duration::from_secs(120);
/// The largest number that sops can carry (it holds those that are no 64-bit integers as IEEE 754 doubles).
const LARGEST: f64 = f64::MAX;

/// A sealed state that cannot be opened, or a state that cannot be sealed.
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
    /// It ran and refused to encrypt.
    #[error(
        "it is to be encrypted with sops, which could not do so: correct the recipients, or see that their key service answers"
    )]
    NotSealed(#[source] SopsSaid),
    /// The configuration for sops could not be written.
    #[error("it is to be encrypted with sops, whose configuration could not be written to {}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// What sops made of it is something else.
    #[error(
        "it was encrypted with sops, and opened again it is not the same: {place} differs, so it was not kept"
    )]
    NotTheSame {
        /// Where the first difference is.
        place: String,
    },
    /// Only JSON documents are sealed.
    #[error("it is to be encrypted with sops, and is not a JSON object")]
    NotJson,
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

impl SealError {
    /// Whether it may be otherwise a moment later: a key service that does not answer looks like a wrong key.
    pub(super) fn may_pass(&self) -> bool {
        matches!(
            self,
            SealError::Child(_)
                | SealError::Refused(_)
                | SealError::NotSealed(_)
                | SealError::Config { .. }
        )
    }
}

/// The words of sops itself, on one line; how it ended, where it said nothing.
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
    open_with(sealed, None).await
}

/// The same with the age keys of this file, where one is given, in place of the environment's file.
pub async fn open_with(sealed: &[u8], keys: Option<&Path>) -> Result<Vec<u8>, SealError> {
    let opened = sops(&["decrypt"], sealed, keys)
        .await?
        .map_err(SealError::Refused)?;
    if is_binary(&opened) {
        return Err(SealError::Binary);
    }
    Ok(opened)
}

/// A sealed document, and what of it is no longer as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// The document.
    pub document: Vec<u8>,
    /// What it is when it is opened.
    pub opened: Vec<u8>,
    /// The numbers whose value sops could not carry.
    pub changed: Vec<Difference>,
}

/// Seals a JSON document for `recipients`, opens it again and compares. The configuration for sops, in which nothing is
/// secret, is written to `folder`.
pub async fn seal(
    plain: &[u8],
    recipients: &Recipients,
    folder: &Path,
) -> Result<Sealed, SealError> {
    let Ok(Value::Object(before)) = serde_json::from_slice(plain) else {
        return Err(SealError::NotJson);
    };
    let before = Value::Object(before);
    let path = folder.join("sops.json");
    let text = recipients.config().to_string();
    // Once it is there, a disk that has become full does not keep a state from being sealed.
    if std::fs::read(&path).ok().as_deref() != Some(text.as_bytes()) {
        std::fs::write(&path, text).map_err(|source| SealError::Config {
            path: path.clone(),
            source,
        })?;
    }
    let config = path.to_string_lossy();
    let arguments = [
        "--config",
        &config,
        "encrypt",
        "--filename-override",
        "terraform.tfstate",
    ];
    let mut carried = before.clone();
    let document = if cut_to_largest(&mut carried) {
        sops(&arguments, carried.to_string().as_bytes(), None).await?
    } else {
        sops(&arguments, plain, None).await?
    };
    let document = document.map_err(SealError::NotSealed)?;
    let opened = open(&document).await?;
    let Ok(after) = serde_json::from_slice(&opened) else {
        return Err(SealError::NotTheSame {
            place: "everything".to_owned(),
        });
    };
    let changed =
        same::changed_numbers(&before, &after).map_err(|place| SealError::NotTheSame { place })?;
    Ok(Sealed {
        document,
        opened,
        changed,
    })
}

/// Replaces the numbers that are too large for sops, which would refuse the whole document, by the largest that it takes.
/// Whether there were any.
fn cut_to_largest(value: &mut Value) -> bool {
    match value {
        Value::Number(number) => {
            let carried = number.as_f64();
            if carried.is_some_and(f64::is_finite) {
                return false;
            }
            let negative = number.as_str().starts_with('-');
            let largest = if negative { -LARGEST } else { LARGEST };
            if let Some(largest) = Number::from_f64(largest) {
                *number = largest;
            }
            true
        }
        Value::Array(values) => values
            .iter_mut()
            .fold(false, |any, v| cut_to_largest(v) | any),
        Value::Object(members) => members
            .values_mut()
            .fold(false, |any, v| cut_to_largest(v) | any),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

/// Runs sops over `input`. What it said when it refused is the inner error.
async fn sops(
    arguments: &[&str],
    input: &[u8],
    keys: Option<&Path>,
) -> Result<Result<Vec<u8>, SopsSaid>, SealError> {
    let sops = child::find_program(Path::new("sops")).ok_or(SealError::NoSops)?;
    let mut command = child::command(&sops);
    // They would go before the configuration that names the recipients.
    for name in super::recipients::OF_SOPS.iter().chain(&["SOPS_CONFIG"]) {
        command.env_remove(name);
    }
    if let Some(keys) = keys {
        command.env("SOPS_AGE_KEY_FILE", keys);
    }
    command.args(arguments).args([
        "--input-type",
        "json",
        "--output-type",
        "json",
        "/dev/stdin",
    ]);
    let output = child::capture(command, "sops", input, BOUND)
        .await
        .map_err(SealError::Child)?;
    if output.status.success() {
        return Ok(Ok(output.stdout));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = said.split_whitespace().collect();
    if said.is_empty() {
        return Ok(Err(SopsSaid(format!(
            "nothing, and {}",
            child::end_in_words(output.status)
        ))));
    }
    Ok(Err(SopsSaid(said.join(" "))))
}

/// Whether a sealed document is one that was sealed as a blob: beside sops' own member it has `data` alone.
pub fn is_binary_sealed(document: &[u8]) -> bool {
    let Ok(Value::Object(members)) = serde_json::from_slice(document) else {
        return false;
    };
    members.len() == 2 && members.contains_key("data") && members.contains_key("sops")
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
