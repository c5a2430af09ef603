//! The pattern that picks variable files.

use serde::Serialize;

use super::template::TemplateError;

/// A pattern for file names of one folder: `*` stands for any characters, `?` for one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(super) struct Glob(String);

impl Default for Glob {
    fn default() -> Self {
        Self("*.tfvars".to_owned())
    }
}

impl Glob {
    pub(super) fn pattern(&self) -> &str {
        &self.0
    }

    pub(super) fn parse(text: &str) -> Result<Self, TemplateError> {
        let refuse = |fault: String| TemplateError {
            key: "tfvars",
            text: text.to_owned(),
            fault,
        };
        if text.is_empty() {
            return Err(refuse("is empty".to_owned()));
        }
        let known = |c: char| c.is_ascii_alphanumeric() || "._-+ *?".contains(c);
        match text.chars().find(|c| !known(*c)) {
            Some(c) => Err(refuse(format!(
                "has the character {:?}; it is a pattern for the file names of one folder, of letters, digits, \".\", \"_\", \"-\", \"+\", blanks, \"*\" and \"?\"",
                c.to_string()
            ))),
            None => Ok(Self(text.to_owned())),
        }
    }

    /// Matches from left to right and, where the text does not fit, lets the last `*` take one character more: time
    /// grows with the product of both lengths at worst.
    pub(super) fn matches(&self, file_name: &str) -> bool {
        if file_name.starts_with('.') && !self.0.starts_with('.') {
            return false;
        }
        let pattern: Vec<char> = self.0.chars().collect();
        let text: Vec<char> = file_name.chars().collect();
        let (mut p, mut t) = (0, 0);
        let mut last_star: Option<(usize, usize)> = None;
        while t < text.len() {
            match pattern.get(p) {
                Some('*') => {
                    last_star = Some((p, t));
                    p += 1;
                }
                Some(c) if *c == '?' || *c == text[t] => {
                    p += 1;
                    t += 1;
                }
                _ => match last_star {
                    Some((star, taken)) => {
                        last_star = Some((star, taken + 1));
                        p = star + 1;
                        t = taken + 1;
                    }
                    None => return false,
                },
            }
        }
        pattern[p..].iter().all(|c| *c == '*')
    }
}
