//! The trailers of a commit's message, as `git interpret-trailers` has them.

/// Key and value of each trailer, in their order. Only the last paragraph can hold any, and a message of one paragraph
/// has none. A message that is not to be taken apart has none.
pub(super) fn of_message(message: &[u8]) -> Vec<(String, String)> {
    // git itself reads a message no further than to a NUL, which it never writes.
    let message = message.split(|byte| *byte == 0).next().unwrap_or_default();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match git2::message_trailers_bytes(message) {
        Ok(trailers) => trailers
            .iter()
            .map(|(key, value)| (text(key), text(value)))
            .collect(),
        Err(error) => {
            tracing::debug!(%error, "the message's trailers were not read");
            Vec::new()
        }
    }
}

/// The trailers as the lines of a message: each value on one line, and none that is unknown or empty.
pub fn to_lines<'a>(trailers: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> String {
    let mut lines = String::new();
    for (key, value) in trailers {
        let words = value.unwrap_or_default().split_whitespace();
        let value = words.collect::<Vec<_>>().join(" ");
        let value = value.replace(char::is_control, "");
        if !value.is_empty() {
            lines.push_str(&format!("{key}: {value}\n"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    /// What the git program reads from the message.
    fn by_git(message: &str) -> Vec<(String, String)> {
        let mut git = Command::new("git")
            .args(["interpret-trailers", "--parse"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = git.stdin.take().unwrap();
        input.write_all(message.as_bytes()).unwrap();
        drop(input);
        let output = git.wait_with_output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines().map(|line| line.split_once(':').unwrap());
        lines.map(|(k, v)| (k.into(), v.trim().into())).collect()
    }

    #[test]
    fn trailers_are_read_as_the_git_program_reads_them() {
        let mut with = 0;
        for message in [
            "Drop the cache\n\nIt is empty.\n\nAllow-Destroy: a.b\n",
            "Drop the cache\n\nAllow-Destroy: a.b[\"x: y\"]\nallow-destroy: module.c.d\nSigned-off-by: A <a@example.com>\n",
            "Drop the cache\n\nAllow-Destroy : a.b\n",
            "Drop the cache\n\nAllow-Destroy:a.b\n\n\n",
            "Drop the cache\r\n\r\nAllow-Destroy: a.b\r\n",
            "Drop the cache\n\nAllow-Destroy: a.b\n\nThat was not the last paragraph.\n",
            "Drop the cache\n\nSome words before it.\nAllow-Destroy: a.b\n",
            "Drop the cache\n\nAllow-Destroy: a.b\nand words behind it\nand more\nand more\n",
            "Drop the cache\n\nSigned-off-by: A <a@example.com>\nwords\nAllow-Destroy: a.b\n",
            "Drop the cache\n\n  Allow-Destroy: a.b\n",
            "Drop the cache\n\n* Allow-Destroy: a.b\n",
            "Drop the cache\nAllow-Destroy: a.b\n",
            "Allow-Destroy: a.b\n",
            "Drop the cache\n\nAllow-Destroy=a.b\n",
            "Drop the cache\n\nAllow Destroy: a.b\n",
            "Drop the cache\n\nAllow-Destroy:\n",
            "Drop the cache\n\nAllow-Destroy: a.b\n---\n file | 2 +-\n",
            "Drop the cache\n\n* Empty it\n\n---------\n\nAllow-Destroy: a.b\n",
            "",
            "\n\n",
        ] {
            let ours = of_message(message.as_bytes());
            let ours: Vec<(String, String)> = ours
                .into_iter()
                .map(|(key, value)| (key.trim().into(), value.trim().into()))
                .collect();
            with += usize::from(!ours.is_empty());
            assert_eq!(ours, by_git(message), "{message:?}");
        }
        assert!(with >= 6, "{with}");
    }

    #[test]
    fn a_message_that_is_no_text_is_read_as_far_as_it_goes() {
        assert_eq!(
            of_message(b"Caf\xe9\n\nAllow-Destroy: a.b\n"),
            [("Allow-Destroy".to_owned(), "a.b".to_owned())]
        );
        assert_eq!(of_message(b"Caf\xe9\0\n\nAllow-Destroy: a.b\n"), []);
    }
}
