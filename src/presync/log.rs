//! presync's one log: its own lines, Terraform's output, record lines; counted, and with secrets masked.

use std::fmt::Display;
use std::io::{self, Write};

use crate::transport::strip::{Stripper, stripped};
use crate::transport::summary::{Class, Summary};

use super::mask::{Mask, find};

/// How every line of our own begins; people and scripts grep for it.
const PREFIX: &str = "presync: ";
/// How the lines of a state begin that could not be written anywhere else.
const STATE: &str = "presync-state: ";
/// How the lines begin that only we may write: [`PREFIX`] and record lines.
const OURS: &[u8] = b"presync";
/// A line of a child is held back until it ends, so that it can be masked whole; one longer than this goes on in pieces.
const LONGEST_HELD: usize = 64 * 1024;

/// The log. Writing never fails for its callers: a reader that has gone must not end an apply half-way.
pub struct Log {
    out: Box<dyn Write>,
    lines: u64,
    bytes: u64,
    record: Option<String>,
    mask: Mask,
    strip: Stripper,
    held: Vec<u8>,
    within_line: bool,
}

impl Log {
    /// A log on standard output.
    pub fn to_stdout() -> Log {
        Log::to(Box::new(io::stdout()))
    }

    /// A log on standard error, where standard output belongs to somebody else.
    pub fn to_stderr() -> Log {
        Log::to(Box::new(io::stderr()))
    }

    /// A log on anything that can be written to.
    pub fn to(out: Box<dyn Write>) -> Log {
        Log {
            out,
            lines: 0,
            bytes: 0,
            record: None,
            mask: Mask::default(),
            strip: Stripper::default(),
            held: Vec::new(),
            within_line: false,
        }
    }

    /// Masks these values from now on ([`Mask::add`]).
    pub fn mask(&mut self, secrets: Vec<String>) {
        self.mask.add(secrets);
    }

    /// What is masked.
    pub fn masking(&self) -> &Mask {
        &self.mask
    }

    /// Writes one line of our own.
    pub fn say(&mut self, text: impl Display) {
        self.line(&format!("{PREFIX}{text}"));
    }

    /// Writes one line of the state backend's.
    pub fn state_backend(&mut self, text: impl Display) {
        self.line(&format!("state backend: {text}"));
    }

    /// Writes record lines.
    pub fn record(&mut self, lines: &[String], digest: String) {
        self.end_child();
        for line in lines {
            self.write(format!("{line}\n").as_bytes());
        }
        self.record = Some(digest);
    }

    /// Writes a state that has no other place to go, in lines of base64.
    pub fn state(&mut self, lines: &[String]) {
        self.end_child();
        for line in lines {
            self.write(format!("{STATE}{line}\n").as_bytes());
        }
    }

    /// Takes output of a child, in pieces of any size. Its lines that begin like ours are indented; control sequences are
    /// taken out before, so that none can hide such a beginning, or a secret.
    pub fn child(&mut self, piece: &[u8]) {
        let mut plain = Vec::with_capacity(piece.len());
        self.strip.push(piece, &mut plain);
        for part in plain.split_inclusive(|byte| *byte == b'\n') {
            self.held.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.release(self.held.len());
            } else if self.held.len() > LONGEST_HELD {
                // As much stays as a secret could have of its beginning in what goes.
                let overlap = self.mask.secrets().first().map_or(0, Vec::len);
                self.release(self.held.len().saturating_sub(overlap));
            }
        }
    }

    /// Ends a child's last line where it did not do so itself.
    pub fn end_child(&mut self) {
        self.strip.end(&mut self.held);
        if !self.held.is_empty() || self.within_line {
            self.held.push(b'\n');
            self.release(self.held.len());
        }
    }

    /// What the termination summary says of this log.
    pub fn summary(&self, class: Class) -> Summary {
        Summary {
            presync: Summary::VERSION,
            class,
            lines: self.lines,
            bytes: self.bytes,
            record: self.record.clone(),
        }
    }

    fn line(&mut self, text: &str) {
        self.end_child();
        let text = text.replace(['\n', '\r'], " ");
        let masked = self.mask.masked(&stripped(text.as_bytes()));
        self.write(&masked);
        self.write(b"\n");
    }

    /// Writes the first `length` bytes of what is held; a secret that crosses that border goes with them.
    fn release(&mut self, length: usize) {
        let mut length = length.min(self.held.len());
        loop {
            let border = length;
            for secret in self.mask.secrets() {
                let from = length.saturating_sub(secret.len() - 1);
                let to = (length + secret.len() - 1).min(self.held.len());
                let window = self.held.get(from..to).unwrap_or_default();
                if let Some(at) = find(window, secret) {
                    length = length.max(from + at + secret.len());
                }
            }
            if length == border {
                break;
            }
        }
        let rest = self.held.split_off(length);
        let line = std::mem::replace(&mut self.held, rest);
        let masked = self.mask.masked(&line);
        // A terminal does not show NUL.
        let mut visible = masked.iter().filter(|byte| **byte != 0);
        if !self.within_line && OURS.iter().all(|byte| visible.next() == Some(byte)) {
            self.write(b"  ");
        }
        self.within_line = !masked.ends_with(b"\n");
        self.write(&masked);
    }

    fn write(&mut self, bytes: &[u8]) {
        self.lines += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.bytes += bytes.len() as u64;
        if let Err(error) = self.out.write_all(bytes).and_then(|()| self.out.flush()) {
            tracing::debug!(%error, "a line of the log was not written");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn written(work: impl FnOnce(&mut Log)) -> String {
        let out = Shared::default();
        let mut log = Log::to(Box::new(out.clone()));
        work(&mut log);
        let summary = log.summary(Class::Done);
        let bytes = out.0.lock().unwrap().clone();
        assert_eq!(summary.bytes, bytes.len() as u64);
        assert_eq!(
            summary.lines,
            bytes.iter().filter(|b| **b == b'\n').count() as u64
        );
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_childs_lines_that_begin_like_ours_are_indented_however_they_arrive() {
        let text = written(|log| {
            for byte in b"presync: a lie\npresync-record: 1 1/1 x\nfine presync: x\n" {
                log.child(&[*byte]);
            }
            log.child(b"no line end");
            log.say("true");
        });
        assert_eq!(
            text,
            "  presync: a lie\n  presync-record: 1 1/1 x\nfine presync: x\nno line end\npresync: true\n"
        );
    }

    #[test]
    fn a_childs_control_characters_cannot_forge_a_line_of_ours_nor_hide_a_secret() {
        let forged: [&[u8]; 8] = [
            b"\x1b[0mpresync: x",
            b"pre\x07sync: x",
            b"\rpresync: x",
            b"\xc2\x9b0mpresync: x",
            b"\x7fpresync: x",
            b"\x1b]0;title\x07presync: x",
            b"\x1b(Bpresync: x\x1b[",
            b"p\x1b[1mresync: x",
        ];
        for line in forged {
            let text = written(|log| {
                for byte in line {
                    log.child(&[*byte]);
                }
                log.say("true");
            });
            assert_eq!(text, "  presync: x\npresync: true\n", "{line:?}");
        }
        let text = written(|log| {
            log.mask(vec!["hunter2hunter2".to_owned()]);
            log.child(b"hunter2\x1b[1mhunter2\n");
            log.say("hunter2\x07hunter2");
            log.state_backend("x\npresync: y");
        });
        assert_eq!(text, "***\npresync: ***\nstate backend: x presync: y\n");
    }

    #[test]
    fn control_characters_alone_are_no_line() {
        let text = written(|log| {
            log.child(b"\x1b[0m\r");
            log.say("true");
        });
        assert_eq!(text, "presync: true\n");
    }

    #[test]
    fn nul_and_what_is_not_utf8_pass_and_do_not_hide_a_beginning_like_ours() {
        let out = Shared::default();
        let mut log = Log::to(Box::new(out.clone()));
        log.child(b"a\0b\xff\xc2\n\0pre\0sync: x\n\xffpresync\n\xc2");
        log.end_child();
        assert_eq!(
            *out.0.lock().unwrap(),
            b"a\0b\xff\xc2\n  \0pre\0sync: x\n\xffpresync\n\xc2\n"
        );
    }

    #[test]
    fn a_secret_is_masked_wherever_the_line_is_cut_and_in_our_own_lines() {
        for cut in 0..30 {
            let text = written(|log| {
                log.mask(vec!["hunter2hunter2".to_owned(), "short".to_owned()]);
                let line = b"token=hunter2hunter2, short\n";
                let cut = cut.min(line.len());
                log.child(&line[..cut]);
                log.child(&line[cut..]);
                log.say("with hunter2hunter2");
            });
            assert_eq!(text, "token=***, short\npresync: with ***\n");
        }
    }

    #[test]
    fn a_secret_in_a_line_without_end_is_masked_across_its_pieces() {
        let secret = "0123456789abcdef";
        for before in LONGEST_HELD - 20..LONGEST_HELD + 20 {
            let text = written(|log| {
                log.mask(vec![secret.to_owned()]);
                let line = format!("{}{secret}{}", "x".repeat(before), "y".repeat(100));
                for piece in line.as_bytes().chunks(1000) {
                    log.child(piece);
                }
                log.end_child();
            });
            assert!(!text.contains("0123456789"), "{before}");
            assert_eq!(text.matches("***").count(), 1, "{before}");
        }
    }

    #[test]
    fn every_line_of_a_key_is_masked() {
        let text = written(|log| {
            log.mask(vec!["-----BEGIN KEY-----\nabcdefghijkl\n".to_owned()]);
            log.child(b"abcdefghijkl\n");
        });
        assert_eq!(text, "***\n");
    }

    #[test]
    fn a_secret_is_masked_in_quotes_in_json_and_in_json_within_quotes() {
        let secret = "pa\"ss\\w<o>r&d\tx\ny";
        for line in [
            r#"x = "pa\"ss\\w<o>r&d\tx\ny""#,
            r#"x = "pa\"ss\\w\u003co\u003er\u0026d\tx\ny""#,
            r#"x = "{\"k\":\"pa\\\"ss\\\\w\\u003co\\u003er\\u0026d\\tx\\ny\"}""#,
            r#"x = "{\"k\":\"pa\\\"ss\\\\w<o>r&d\\tx\\ny\"}""#,
        ] {
            let text = written(|log| {
                log.mask(vec![secret.to_owned()]);
                log.child(line.as_bytes());
                log.end_child();
            });
            assert!(text.contains("\"***"), "{text}");
            assert!(!text.contains("ss"), "{text}");
            assert!(
                text.ends_with("***\"\n") || text.ends_with("***\\\"}\"\n"),
                "{text}"
            );
        }
    }

    #[test]
    fn the_texts_within_a_secret_of_json_are_masked_and_short_ones_are_not() {
        let text = written(|log| {
            let secret = r#"{"user": "short", "list": [{"password": "hunter\"hunter2"}], "long_key": 12345678}"#;
            log.mask(vec![secret.to_owned()]);
            log.child(b"short long_key 12345678 hunter\"hunter2 \"hunter\\\"hunter2\"\n");
        });
        assert_eq!(text, "short long_key 12345678 *** \"***\"\n");
    }

    #[test]
    fn a_short_secret_is_not_masked_where_its_escapes_make_it_longer() {
        let text = written(|log| {
            log.mask(vec!["a\"b\"c\"d".to_owned(), " ".repeat(12)]);
            log.child(b"a\\\"b\\\"c\\\"d            x\n");
        });
        assert_eq!(text, "a\\\"b\\\"c\\\"d            x\n");
    }
}
