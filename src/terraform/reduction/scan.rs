//! The tokens of Terraform's own syntax, as its scanner cuts them: strings, templates in them, heredocs and comments.
//!
//! A heredoc ends where Terraform ends it, at a line that holds its marker alone, which hcl-edit sees otherwise. What may
//! be cut in another way is no token but an error. Nothing here recurses, and the time grows with the length alone.

use crate::terraform::root::DEEPEST;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Ident,
    /// The end of a line, that of a comment included.
    Newline,
    /// `=` alone.
    Equal,
    Dot,
    /// `::`, which only the names of functions have.
    DoubleColon,
    /// `(`, `[` or `{`.
    Open(u8),
    /// `)`, `]` or `}`.
    Close(u8),
    QuoteOpen,
    QuoteClose,
    HeredocOpen,
    HeredocClose,
    /// `${` or `%{` in a string or a heredoc.
    TemplateOpen,
    /// The `}` that ends it.
    TemplateClose,
    /// Text in a string or a heredoc.
    Literal,
    /// Numbers and all other operators.
    Other,
}

/// One token, with its first byte and the one after its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
}

/// Text that cannot be cut, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable {
    pub at: usize,
    pub why: &'static str,
}

/// What is open where the scanner stands.
enum Open<'a> {
    Bracket(u8),
    Template,
    Quote,
    /// With its marker.
    Heredoc(&'a str),
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    tokens: Vec<Token>,
    /// What is open, with its place.
    open: Vec<(Open<'a>, usize)>,
}

/// Cuts `text`, which begins with no byte order mark.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, Unreadable> {
    let mut scanner = Scanner {
        text,
        at: 0,
        tokens: Vec::new(),
        open: Vec::new(),
    };
    while scanner.at < text.len() {
        match scanner.open.last() {
            Some((Open::Quote, _)) => scanner.quoted()?,
            Some((Open::Heredoc(marker), _)) => {
                let marker = *marker;
                scanner.heredoc_line(marker)?;
            }
            _ => scanner.plain()?,
        }
    }
    match scanner.open.last() {
        None => Ok(scanner.tokens),
        Some((open, at)) => Err(Unreadable {
            at: *at,
            why: match open {
                Open::Bracket(_) => "a bracket is not closed",
                Open::Template => "a template in a string is not closed",
                Open::Quote => "a string is not closed",
                Open::Heredoc(_) => "a heredoc is not closed by a line with its marker alone",
            },
        }),
    }
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn refuse<T>(&self, why: &'static str) -> Result<T, Unreadable> {
        Err(Unreadable { at: self.at, why })
    }

    fn push(&mut self, kind: Kind, length: usize) {
        let start = self.at;
        self.at += length;
        let end = self.at;
        self.tokens.push(Token { kind, start, end });
    }

    fn enter(&mut self, kind: Kind, length: usize, open: Open<'a>) -> Result<(), Unreadable> {
        if self.open.len() == DEEPEST {
            return self.refuse("it nests deeper than 256 levels");
        }
        self.open.push((open, self.at));
        self.push(kind, length);
        Ok(())
    }

    fn leave(&mut self, kind: Kind, length: usize) {
        self.open.pop();
        self.push(kind, length);
    }

    /// One token outside of strings.
    fn plain(&mut self) -> Result<(), Unreadable> {
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let second = bytes.get(1);
        match bytes[0] {
            b' ' | b'\t' => self.at += 1,
            b'\n' => self.push(Kind::Newline, 1),
            b'\r' if second == Some(&b'\n') => self.push(Kind::Newline, 2),
            b'#' => self.line_comment(),
            b'/' if second == Some(&b'/') => self.line_comment(),
            b'/' if second == Some(&b'*') => match rest[2..].find("*/") {
                Some(length) => self.at += length + 4,
                None => return self.refuse("a comment is not closed"),
            },
            b'"' => self.enter(Kind::QuoteOpen, 1, Open::Quote)?,
            b'<' if second == Some(&b'<') => {
                let Some((length, marker)) = heredoc_begin(rest) else {
                    return self.refuse("<< begins no heredoc");
                };
                self.enter(Kind::HeredocOpen, length, Open::Heredoc(marker))?;
            }
            byte @ (b'(' | b'[' | b'{') => self.enter(Kind::Open(byte), 1, Open::Bracket(byte))?,
            b'~' if second == Some(&b'}') => match self.open.last() {
                Some((Open::Template, _)) => self.leave(Kind::TemplateClose, 2),
                _ => return self.refuse("~} closes no template"),
            },
            byte @ (b')' | b']' | b'}') => match self.open.last() {
                Some((Open::Bracket(open), _)) if closing(*open) == byte => {
                    self.leave(Kind::Close(byte), 1);
                }
                Some((Open::Template, _)) if byte == b'}' => self.leave(Kind::TemplateClose, 1),
                _ => return self.refuse("a bracket is closed that is not open"),
            },
            b':' if second == Some(&b':') => self.push(Kind::DoubleColon, 2),
            b'.' if rest.starts_with("...") => self.push(Kind::Other, 3),
            b'.' => self.push(Kind::Dot, 1),
            b'=' if matches!(second, Some(b'=' | b'>')) => self.push(Kind::Other, 2),
            b'=' => self.push(Kind::Equal, 1),
            b'!' | b'<' | b'>' if second == Some(&b'=') => self.push(Kind::Other, 2),
            byte if byte.is_ascii_digit() => {
                let digits = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
                self.push(Kind::Other, digits);
            }
            byte if byte.is_ascii_graphic() && !byte.is_ascii_alphabetic() && byte != b'_' => {
                self.push(Kind::Other, 1);
            }
            _ => match identifier(rest) {
                "" => {
                    return self.refuse(
                        "a character stands here that only a string or a comment may hold",
                    );
                }
                name => self.push(Kind::Ident, name.len()),
            },
        }
        Ok(())
    }

    /// Its end ends the line as well.
    fn line_comment(&mut self) {
        match self.rest().find('\n') {
            Some(length) => {
                self.at += length;
                self.push(Kind::Newline, 1);
            }
            None => self.at = self.text.len(),
        }
    }

    /// Text up to the end of a string, or to a template in it.
    fn quoted(&mut self) -> Result<(), Unreadable> {
        let mut characters = self.rest().char_indices();
        while let Some((at, character)) = characters.next() {
            let here = &self.rest()[at..];
            match character {
                '"' => {
                    self.literal(at);
                    self.leave(Kind::QuoteClose, 1);
                    return Ok(());
                }
                '\n' | '\r' => return self.unclosed_quote(),
                '\\' => match characters.next() {
                    Some((_, '\n' | '\r')) | None => return self.unclosed_quote(),
                    Some(_) => {}
                },
                '$' | '%' if is_escaped_template(here) => {
                    characters.next();
                    characters.next();
                }
                '$' | '%' if here[1..].starts_with('{') => return self.template(at),
                _ => {}
            }
        }
        self.unclosed_quote()
    }

    fn unclosed_quote(&mut self) -> Result<(), Unreadable> {
        Err(Unreadable {
            at: self.open.last().map_or(self.at, |(_, at)| *at),
            why: "a string does not end on its line",
        })
    }

    /// A heredoc's line up to its end or to a template in it, or the line that ends the heredoc.
    fn heredoc_line(&mut self, marker: &str) -> Result<(), Unreadable> {
        let rest = self.rest();
        let Some(length) = rest.find('\n') else {
            // Terraform wants the end of the marker's line, even at the end of the file.
            self.at = self.text.len();
            return Ok(());
        };
        let line = &rest[..length];
        let begins_line = self.at == 0 || self.text.as_bytes()[self.at - 1] == b'\n';
        if begins_line && line.trim() == marker {
            let end = line.trim_end_matches('\r').len();
            self.leave(Kind::HeredocClose, end);
            self.push(Kind::Newline, length + 1 - end);
            return Ok(());
        }
        let mut at = 0;
        while let Some(next) = line[at..].find(['$', '%']) {
            at += next;
            let here = &line[at..];
            if is_escaped_template(here) {
                at += 3;
            } else if here[1..].starts_with('{') {
                return self.template(at);
            } else {
                at += 1;
            }
        }
        self.push(Kind::Literal, length + 1);
        Ok(())
    }

    /// The text of `length` before a template, and its begin.
    fn template(&mut self, length: usize) -> Result<(), Unreadable> {
        self.literal(length);
        let begin = if self.rest()[2..].starts_with('~') {
            3
        } else {
            2
        };
        self.enter(Kind::TemplateOpen, begin, Open::Template)
    }

    fn literal(&mut self, length: usize) {
        if length > 0 {
            self.push(Kind::Literal, length);
        }
    }
}

fn closing(open: u8) -> u8 {
    match open {
        b'(' => b')',
        b'[' => b']',
        _ => b'}',
    }
}

/// Whether `$${` or `%%{` stands here.
fn is_escaped_template(here: &str) -> bool {
    here.starts_with("$${") || here.starts_with("%%{")
}

/// The length of `<<MARKER` with the end of its line, and the marker.
fn heredoc_begin(rest: &str) -> Option<(usize, &str)> {
    let after = rest.strip_prefix("<<")?;
    let name = after.strip_prefix('-').unwrap_or(after);
    let marker = identifier(name);
    let end = &name[marker.len()..];
    let end = end.strip_prefix('\r').unwrap_or(end).strip_prefix('\n')?;
    (!marker.is_empty()).then_some((rest.len() - end.len(), marker))
}

/// The identifier at the begin of `rest`; empty where there is none.
fn identifier(rest: &str) -> &str {
    let begins = rest.starts_with(|c: char| c == '_' || c.is_alphabetic());
    let goes_on = |c: char| c == '_' || c == '-' || c.is_alphanumeric();
    let end = rest.find(|c| !goes_on(c)).unwrap_or(rest.len());
    if begins { &rest[..end] } else { "" }
}
