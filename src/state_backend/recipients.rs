//! For whom states are sealed: terraform-backend-git's variables
//! (<https://github.com/plumber-cd/terraform-backend-git#encryption>), else sops' own.

use serde_json::{Map, Value, json};

/// terraform-backend-git's variables begin so.
const TBG: &str = "TF_BACKEND_HTTP_SOPS_";
const PROVIDER: &str = "TF_BACKEND_HTTP_ENCRYPTION_PROVIDER";
const PASSPHRASE: &str = "TF_BACKEND_HTTP_ENCRYPTION_PASSPHRASE";
/// sops' own, by which it would choose the recipients itself.
pub(super) const OF_SOPS: &[&str] = &[
    "SOPS_AGE_RECIPIENTS",
    "SOPS_PGP_FP",
    "SOPS_KMS_ARN",
    "SOPS_GCP_KMS_IDS",
    "SOPS_AZURE_KEYVAULT_URLS",
    "SOPS_VAULT_URIS",
    "SOPS_HUAWEICLOUD_KMS_IDS",
];

/// Variables that name no usable recipients.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RecipientsError {
    /// Another encryption than sops'.
    #[error(
        "{PROVIDER} is {provider:?}: only sops is understood here; encrypt the states with sops, or leave the variable out for plain states"
    )]
    Provider {
        /// What it names.
        provider: String,
    },
    /// sops is asked for, and nobody who could open what it seals.
    #[error(
        "{PROVIDER} is \"sops\" and no recipient is named: set {TBG}AGE_RECIPIENTS, SOPS_AGE_RECIPIENTS or another of their kind"
    )]
    Nobody,
    /// Not a number.
    #[error("the variable {variable} is {value:?}, and a {wanted} is expected")]
    Value {
        /// The variable.
        variable: String,
        /// Its value.
        value: String,
        /// What it should be.
        wanted: &'static str,
    },
    /// A kind that the configuration of sops cannot carry from here.
    #[error(
        "the variable {variable} is not understood here: use {TBG}… or another of sops' variables"
    )]
    NotUnderstood {
        /// The variable.
        variable: &'static str,
    },
}

/// Key groups for sops, at least one of them with a recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipients {
    groups: Vec<Value>,
    threshold: Option<u64>,
}

impl Recipients {
    /// Reads the variables. `None`: states are kept plain.
    pub fn from_environment() -> Result<Option<Recipients>, RecipientsError> {
        Recipients::from_variables(|name| {
            std::env::var(name)
                .ok()
                .filter(|value| !value.trim().is_empty())
        })
    }

    fn from_variables(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Recipients>, RecipientsError> {
        let provider = variable(PROVIDER);
        match provider.as_deref() {
            None if variable(PASSPHRASE).is_some() => {
                return Err(RecipientsError::Provider {
                    provider: "aes".to_owned(),
                });
            }
            None | Some("sops") => {}
            Some(other) => {
                return Err(RecipientsError::Provider {
                    provider: other.to_owned(),
                });
            }
        }
        let tbg = |name: &str| variable(&format!("{TBG}{name}"));
        // Each kind is a group of its own there, and all of one group here: sops' own way.
        let mut groups: Vec<Value> = [
            ("age", tbg("AGE_RECIPIENTS").map(|v| list(&v))),
            ("pgp", tbg("PGP_FP").map(|v| list(&v))),
            ("kms", tbg("AWS_KMS_ARNS").map(|arns| aws(&arns, &tbg))),
            ("gcp_kms", tbg("GCP_KMS_KEYS").map(|v| gcp(&v))),
            ("hc_vault", tbg("HC_VAULT_URIS").map(|v| list(&v))),
        ]
        .into_iter()
        .filter_map(|(kind, keys)| Some(json!({ kind: keys? })))
        .collect();
        let mut threshold = None;
        if groups.is_empty() {
            for name in ["SOPS_HUAWEICLOUD_KMS_IDS"] {
                if variable(name).is_some() {
                    return Err(RecipientsError::NotUnderstood { variable: name });
                }
            }
            let azure = variable("SOPS_AZURE_KEYVAULT_URLS")
                .map(|v| azure(&v))
                .transpose()?;
            let group: Map<String, Value> = [
                ("age", variable("SOPS_AGE_RECIPIENTS").map(|v| list(&v))),
                ("pgp", variable("SOPS_PGP_FP").map(|v| list(&v))),
                ("kms", variable("SOPS_KMS_ARN").map(|v| aws(&v, &|_| None))),
                ("gcp_kms", variable("SOPS_GCP_KMS_IDS").map(|v| gcp(&v))),
                ("azure_keyvault", azure),
                ("hc_vault", variable("SOPS_VAULT_URIS").map(|v| list(&v))),
            ]
            .into_iter()
            .filter_map(|(kind, keys)| Some((kind.to_owned(), keys?)))
            .collect();
            if !group.is_empty() {
                groups.push(Value::Object(group));
            }
        } else if let Some(value) = tbg("SHAMIR_THRESHOLD") {
            let number = value.trim().parse().map_err(|_| RecipientsError::Value {
                variable: format!("{TBG}SHAMIR_THRESHOLD"),
                value: value.clone(),
                wanted: "whole number",
            })?;
            threshold = Some(number);
        }
        if groups.is_empty() {
            return match provider {
                Some(_) => Err(RecipientsError::Nobody),
                None => Ok(None),
            };
        }
        Ok(Some(Recipients { groups, threshold }))
    }

    /// A configuration for sops (<https://getsops.io/docs/#using-sopsyaml-conf-to-select-kms-pgp-and-age-for-new-files>)
    /// that seals every value, those under names that end in `_unencrypted` too.
    pub(super) fn config(&self) -> Value {
        let mut rule = json!({ "key_groups": self.groups, "encrypted_regex": ".*" });
        if let (Some(threshold), Some(rule)) = (self.threshold, rule.as_object_mut()) {
            rule.insert("shamir_threshold".to_owned(), threshold.into());
        }
        json!({ "creation_rules": [rule] })
    }
}

fn parts(value: &str) -> impl Iterator<Item = &str> {
    value
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
}

fn list(value: &str) -> Value {
    parts(value).map(Value::from).collect()
}

fn gcp(value: &str) -> Value {
    parts(value)
        .map(|id| json!({ "resource_id": id }))
        .collect()
}

/// `ARN` or `ARN+ROLE`, as sops writes them.
fn aws(arns: &str, tbg: &impl Fn(&str) -> Option<String>) -> Value {
    let context: Map<String, Value> = tbg("AWS_KMS_CONTEXT")
        .unwrap_or_default()
        .split(',')
        .filter_map(|pair| pair.trim().split_once('='))
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    let profile = tbg("AWS_PROFILE");
    parts(arns)
        .map(|arn| {
            let (arn, role) = match arn.split_once('+') {
                Some((arn, role)) => (arn, Some(role)),
                None => (arn, None),
            };
            let mut key = json!({ "arn": arn });
            if let Some(key) = key.as_object_mut() {
                if let Some(role) = role {
                    key.insert("role".to_owned(), role.into());
                }
                if !context.is_empty() {
                    key.insert("context".to_owned(), context.clone().into());
                }
                if let Some(profile) = &profile {
                    key.insert("aws_profile".to_owned(), profile.as_str().into());
                }
            }
            key
        })
        .collect()
}

/// `https://<vault>.vault.azure.net/keys/<key>/<version>`.
fn azure(urls: &str) -> Result<Value, RecipientsError> {
    parts(urls)
        .map(|url| {
            let fault = || RecipientsError::Value {
                variable: "SOPS_AZURE_KEYVAULT_URLS".to_owned(),
                value: url.to_owned(),
                wanted: "URL like https://<vault>.vault.azure.net/keys/<key>/<version>",
            };
            let (vault, rest) = url.split_once("/keys/").ok_or_else(fault)?;
            let (key, version) = rest.split_once('/').ok_or_else(fault)?;
            Ok(json!({ "vaultUrl": vault, "key": key, "version": version }))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<Recipients>, RecipientsError> {
        Recipients::from_variables(|name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn without_recipients_states_are_plain() {
        assert_eq!(read(&[("SOPS_AGE_KEY", "x")]), Ok(None));
    }

    #[test]
    fn each_kind_of_terraform_backend_gits_is_a_key_group_and_goes_before_sops_own() {
        let recipients = read(&[
            ("TF_BACKEND_HTTP_ENCRYPTION_PROVIDER", "sops"),
            ("TF_BACKEND_HTTP_SOPS_AGE_RECIPIENTS", "age1a, age1b"),
            ("TF_BACKEND_HTTP_SOPS_AWS_KMS_ARNS", "arn:a+role"),
            ("TF_BACKEND_HTTP_SOPS_AWS_KMS_CONTEXT", "k=v"),
            ("TF_BACKEND_HTTP_SOPS_SHAMIR_THRESHOLD", "2"),
            ("SOPS_AGE_RECIPIENTS", "age1other"),
        ]);
        let expected = json!({ "creation_rules": [{
            "key_groups": [
                { "age": ["age1a", "age1b"] },
                { "kms": [{ "arn": "arn:a", "role": "role", "context": { "k": "v" } }] },
            ],
            "encrypted_regex": ".*",
            "shamir_threshold": 2,
        }]});
        assert_eq!(recipients.unwrap().unwrap().config(), expected);
    }

    #[test]
    fn the_kinds_of_sops_own_variables_are_one_key_group() {
        let recipients = read(&[
            ("SOPS_AGE_RECIPIENTS", "age1a"),
            ("SOPS_PGP_FP", "AB,CD"),
            (
                "SOPS_AZURE_KEYVAULT_URLS",
                "https://v.vault.azure.net/keys/k/1",
            ),
        ]);
        let config = recipients.unwrap().unwrap().config();
        assert_eq!(
            config["creation_rules"][0]["key_groups"],
            json!([{
                "age": ["age1a"],
                "pgp": ["AB", "CD"],
                "azure_keyvault": [{ "vaultUrl": "https://v.vault.azure.net", "key": "k", "version": "1" }],
            }])
        );
    }

    #[test]
    fn another_encryption_and_sops_for_nobody_are_refused() {
        for variables in [
            &[("TF_BACKEND_HTTP_ENCRYPTION_PASSPHRASE", "x")][..],
            &[("TF_BACKEND_HTTP_ENCRYPTION_PROVIDER", "aes")],
            &[("TF_BACKEND_HTTP_ENCRYPTION_PROVIDER", "sops")],
            &[("SOPS_HUAWEICLOUD_KMS_IDS", "x")],
            &[("SOPS_AZURE_KEYVAULT_URLS", "x")],
            &[
                ("TF_BACKEND_HTTP_SOPS_AGE_RECIPIENTS", "age1a"),
                ("TF_BACKEND_HTTP_SOPS_SHAMIR_THRESHOLD", "two"),
            ],
        ] {
            assert!(read(variables).is_err(), "{variables:?}");
        }
    }
}
