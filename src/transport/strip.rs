//! Control sequences taken out of a text: they can hide lines from a reader, or make one line look like another.

/// Takes the bytes of a text as they come, in pieces of any size, and gives them without control characters and
/// sequences. NUL, TAB and bytes that are not UTF-8 pass. What it gave passes a second one unchanged.
#[derive(Debug, Default)]
pub struct Stripper {
    state: State,
    /// 0xC2 was the last byte that was given.
    after_c2: bool,
}

/// Where in a control sequence it is (ECMA-48 forms).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    Escape,
    /// `ESC [` … final byte.
    Csi,
    /// `ESC ]`, `ESC P`, `ESC X`, `ESC ^`, `ESC _` … BEL or `ESC \`.
    Str,
    StrEscape,
    /// 0xC2 was read: a C1 control in UTF-8 may follow.
    Utf8C2,
}

impl Stripper {
    /// Takes a piece, and adds what stays of it.
    pub fn push(&mut self, piece: &[u8], stripped: &mut Vec<u8>) {
        for &byte in piece {
            self.take(byte, stripped);
        }
    }

    /// The text ends here: adds what was held back of it. What comes next begins anew.
    pub fn end(&mut self, stripped: &mut Vec<u8>) {
        if self.state == State::Utf8C2 {
            stripped.push(0xc2);
        }
        *self = Stripper::default();
    }

    /// A sequence ends at the end of its line, whatever it is: it cannot swallow the next one.
    fn take(&mut self, byte: u8, stripped: &mut Vec<u8>) {
        if byte == b'\n' {
            self.end(stripped);
            stripped.push(byte);
            return;
        }
        match self.state {
            State::Text => match byte {
                0x1b => self.state = State::Escape,
                0xc2 => self.state = State::Utf8C2,
                // What moves or rings on a terminal; NUL and TAB are harmless and pass.
                0x01..=0x08 | 0x0b..=0x1f | 0x7f => {}
                // What stood between the two halves of a C1 control was taken out: they must not meet.
                0x80..=0x9f if self.after_c2 => {}
                _ => self.give(byte, stripped),
            },
            State::Utf8C2 => match byte {
                0x9b => self.state = State::Csi,
                0x90 | 0x98 | 0x9d..=0x9f => self.state = State::Str,
                0x80..=0x9f => self.state = State::Text,
                _ => {
                    self.give(0xc2, stripped);
                    self.state = State::Text;
                    self.take(byte, stripped);
                }
            },
            State::Escape => {
                self.state = match byte {
                    b'[' => State::Csi,
                    b']' | b'P' | b'X' | b'^' | b'_' => State::Str,
                    0x20..=0x2f | 0x1b => State::Escape,
                    _ => State::Text,
                }
            }
            State::Csi => match byte {
                0x40..=0x7e => self.state = State::Text,
                0x1b => self.state = State::Escape,
                _ => {}
            },
            State::Str => match byte {
                0x07 => self.state = State::Text,
                0x1b => self.state = State::StrEscape,
                _ => {}
            },
            State::StrEscape => {
                self.state = if byte == b'\\' {
                    State::Text
                } else {
                    State::Str
                }
            }
        }
    }

    fn give(&mut self, byte: u8, stripped: &mut Vec<u8>) {
        self.after_c2 = byte == 0xc2;
        stripped.push(byte);
    }
}

/// A whole text without its control sequences.
pub fn stripped(text: &[u8]) -> Vec<u8> {
    let mut stripper = Stripper::default();
    let mut stripped = Vec::with_capacity(text.len());
    stripper.push(text, &mut stripped);
    stripper.end(&mut stripped);
    stripped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sequences_that_colour_move_or_retitle_are_stripped_and_the_text_between_them_stays() {
        let text =
            b"a\x1b[31mred\x1b[0m b\x1b]0;title\x07c\x1b]8;;x\x1b\\d\re\x08f\xc2\x9b2Kg\x1b(Bh\n";
        assert_eq!(stripped(text), b"ared bcdefgh\n");
    }

    #[test]
    fn an_open_sequence_cannot_swallow_the_next_line() {
        assert_eq!(
            stripped(b"a\x1b]0;never closed\nwill be destroyed\n"),
            b"a\nwill be destroyed\n"
        );
        assert_eq!(stripped(b"a\x1b[\nb\n"), b"a\nb\n");
    }

    #[test]
    fn bytes_that_are_not_utf8_pass_unchanged() {
        let text = b"\xff\xc3 \x00 \xc2\xa0\xc2\n\tx\xc2";
        assert_eq!(stripped(text), text);
    }

    #[test]
    fn what_is_taken_out_does_not_join_the_halves_of_a_control() {
        assert_eq!(stripped(b"\xc2\x1b[0m\x9b0mx"), b"\xc20mx");
        assert_eq!(stripped(b"\xc2\x07\x9b0mx"), b"\xc20mx");
    }

    proptest! {
        #[test]
        fn stripping_twice_is_stripping_once(
            text in proptest::collection::vec(
                prop_oneof![Just(0x1b_u8), Just(b'['), Just(b'm'), Just(b'\n'), Just(0xc2), Just(0x9b), Just(0x07), any::<u8>()], 0..100),
        ) {
            let once = stripped(&text);
            prop_assert_eq!(stripped(&once), once);
        }
    }
}
