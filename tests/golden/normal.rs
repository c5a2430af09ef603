//! What must differ between two runs of one case, put into words that do not.

use std::path::Path;

/// The text with paths, times, ports and the Terraform version replaced.
pub struct Normal<'a> {
    /// Paths and what stands for each; the longer come first.
    pub paths: Vec<(&'a Path, &'static str)>,
    pub terraform_version: Option<&'a str>,
}

impl Normal<'_> {
    pub fn text(&self, bytes: &[u8]) -> String {
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        for (path, name) in &self.paths {
            text = text.replace(path.to_str().unwrap(), name);
        }
        if let Some(version) = self.terraform_version {
            text = text.replace(&format!("Terraform {version}"), "Terraform [VERSION]");
        }
        for mark in ["/stagewright-", "/.stagewright-", "/.tmp"] {
            text = after(&text, mark, "[RANDOM]", char::is_alphanumeric);
        }
        text = after(&text, "127.0.0.1:", "[PORT]", |c| c.is_ascii_digit());
        text = after(&text, "\"seconds\": ", "[SECONDS]", is_decimal);
        text = after(&text, "\"bytes\":", "[BYTES]", |c| c.is_ascii_digit());
        text = after(&text, "sha256:", "[DIGEST]", |c| c.is_ascii_hexdigit());
        // A registration's commit, by its time.
        for mark in [", by commit ", "\"commit\": \"", "| by commit | "] {
            text = after(&text, mark, "[COMMIT]", |c| c.is_ascii_hexdigit());
        }
        text = after(&text, "\"expires\": \"", "[TIME]", |c| c != '"');
        text = after(&text, "Made at ", "[TIME]", |c| c != ' ');
        text = after(&text, "can be confirmed until</dt><dd>", "[TIME]", |c| {
            c != '<'
        });
        text = after(&text, "| can be confirmed until | ", "[TIME]", |c| c != ' ');
        text = after(&text, "to be confirmed until ", "[TIME]", |c| c != '.');
        for before in [" in ", " after "] {
            text = after(&text, before, "[SECONDS]", is_decimal);
        }
        // What a record holds is compared as the result file, where the case asks for one.
        text = after(&text, "presync-record: 1 1/1 ", "[RECORD]", |c| {
            !c.is_whitespace()
        });
        // The tools' own words differ between their versions, and git's remote and local errors come in any order.
        for tool in ["sops said: ", "git said: "] {
            text = after(&text, tool, "[ITS WORDS]", |c| c != '\n' && c != '"');
        }
        refreshed_in_order(&text)
    }
}

fn is_decimal(c: char) -> bool {
    c.is_ascii_digit() || c == '.'
}

/// Replaces the run of characters that `varies` right after each `mark`.
fn after(text: &str, mark: &str, name: &str, varies: impl Fn(char) -> bool) -> String {
    let mut pieces = text.split(mark);
    let mut done = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let rest = piece.trim_start_matches(&varies);
        done.push_str(mark);
        // Only a number with a unit is a time: ` in 3.` of a version or ` after 2 tries` stays.
        let is_time = name != "[SECONDS]" || mark.starts_with('"') || rest.starts_with(" s");
        if rest.len() < piece.len() && is_time {
            done.push_str(name);
            done.push_str(rest);
        } else {
            done.push_str(piece);
        }
    }
    done
}

/// Terraform refreshes several resources at once, and names them as they come.
fn refreshed_in_order(text: &str) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let refreshed = |line: &&str| {
        [
            ": Refreshing state...",
            ": Reading...",
            ": Read complete after",
        ]
        .iter()
        .any(|words| line.contains(words))
    };
    let mut start = 0;
    while let Some(found) = lines[start..].iter().position(refreshed) {
        let from = start + found;
        let length = lines[from..]
            .iter()
            .take_while(|line| refreshed(line))
            .count();
        lines[from..from + length].sort_unstable();
        start = from + length;
    }
    lines.concat()
}

/// Only our own lines of a log.
pub fn own_lines(log: &str) -> String {
    log.split_inclusive('\n')
        .filter(|line| line.starts_with("presync: ") || line.starts_with("state backend: "))
        .collect()
}
