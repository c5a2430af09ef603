//! The checks of the registry that are switched off.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use crate::names::from_text;
use crate::registry::check::CHECKS;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::settings) struct Checks {
    #[serde(default)]
    pub(in crate::settings) off: BTreeMap<CheckToSkip, Reason>,
}

/// The name of a check.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::settings) struct CheckToSkip(pub(in crate::settings) &'static str);

impl<'de> Deserialize<'de> for CheckToSkip {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer, |text| {
            let known = CHECKS.map(|check| check.name);
            match known.into_iter().find(|name| *name == text) {
                Some(name) => Ok(CheckToSkip(name)),
                None => Err(format!(
                    "no check is called {text:?}; there are {}",
                    known.join(", ")
                )),
            }
        })
    }
}

/// Why a check is not made: a text that says something.
pub(in crate::settings) struct Reason(pub(in crate::settings) String);

impl<'de> Deserialize<'de> for Reason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer, |text| match text.trim() {
            "" => Err("a check that is switched off needs a reason".to_owned()),
            text if text.chars().any(char::is_control) => {
                Err("the reason must be one line of text".to_owned())
            }
            text => Ok(Reason(text.to_owned())),
        })
    }
}
