//! The command that comes next, as it is to be typed.

use std::fmt::Display;

use super::{PROGRAM, Step, Wanted};

impl Wanted {
    /// The command of this step for the same stage, out of the same settings and with what the caller takes upon himself.
    pub(super) fn command(&self, step: Step) -> String {
        let mut words = vec![PROGRAM.to_owned()];
        words.extend(step.word().map(str::to_owned));
        words.extend(self.settings_words.iter().map(|w| quoted(w)));
        let mut add = |flag: &str, value: &dyn Display| {
            words.push(flag.to_owned());
            words.push(quoted(&value.to_string()));
        };
        add("--repo", &self.target.repo);
        if let Some(path) = &self.target.path {
            add("--app-path", path);
        }
        add("--stage", &self.target.stage);
        for application in &self.not_deploying {
            add("--not-deploying", application);
        }
        if let Some(file) = &self.record {
            add("--record", &file.display());
        }
        // The record has these, for the steps behind the preview.
        if matches!(step, Step::Preview | Step::All) {
            if let Some(namespace) = &self.namespace {
                add("--namespace", namespace);
            }
            words.extend(self.allowed.iter().map(ToString::to_string));
        }
        words.join(" ")
    }
}

impl Step {
    /// What is typed for it; nothing for all of them.
    fn word(self) -> Option<&'static str> {
        match self {
            Step::Check => Some("check"),
            Step::Preview => Some("preview"),
            Step::Destroy => Some("destroy"),
            Step::RemoveConfig => Some("remove-config"),
            Step::All => None,
        }
    }
}

/// A word as a shell takes it for that word.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_read_otherwise_is_quoted() {
        assert_eq!(quoted("a/b-c.json"), "a/b-c.json");
        assert_eq!(quoted("my record's"), r"'my record'\''s'");
        assert_eq!(quoted("$x"), "'$x'");
        assert_eq!(quoted(""), "''");
    }
}
