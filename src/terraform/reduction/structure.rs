//! The blocks and attributes of a file in Terraform's own syntax, with their places; expressions stay tokens.

use std::ops::Range;

use super::scan::{self, Kind, Token, Unreadable};

/// A file's text, cut.
#[derive(Debug)]
pub(super) struct Source<'a> {
    pub text: &'a str,
    pub tokens: Vec<Token>,
    pub body: Body,
}

/// What stands between two braces, or in a file.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub attributes: Vec<Attribute>,
    pub blocks: Vec<Block>,
}

/// `name = value`.
#[derive(Debug)]
pub(super) struct Attribute {
    pub name: String,
    /// Its bytes, the end of its line left out.
    pub bytes: Range<usize>,
    /// The tokens of its value.
    pub value: Range<usize>,
}

/// `kind "label" { … }`.
#[derive(Debug)]
pub(super) struct Block {
    pub kind: String,
    pub labels: Vec<String>,
    /// Its bytes, the end of its line left out.
    pub bytes: Range<usize>,
    pub body: Body,
}

impl<'a> Source<'a> {
    /// Reads a file's text that begins with no byte order mark.
    pub fn read(text: &'a str) -> Result<Source<'a>, Unreadable> {
        let tokens = scan::tokens(text)?;
        let mut reader = Reader {
            text,
            tokens: &tokens,
            at: 0,
        };
        let body = reader.body()?;
        if let Some(token) = reader.peek() {
            // Cutting pairs the brackets, so this closes none.
            return Err(unreadable(
                token.start,
                "a bracket is closed that is not open",
            ));
        }
        if let Some(attribute) = body.attributes.first() {
            let why = "an attribute stands outside of every block";
            return Err(unreadable(attribute.bytes.start, why));
        }
        Ok(Source { text, tokens, body })
    }

    /// A value's tokens.
    pub fn tokens_of(&self, attribute: &Attribute) -> &[Token] {
        &self.tokens[attribute.value.clone()]
    }

    /// What a value says, where it is one string without templates.
    pub fn string(&self, attribute: &Attribute) -> Option<&'a str> {
        literal(self.text, self.tokens_of(attribute))
    }

    /// The value as it is written.
    pub fn written(&self, attribute: &Attribute) -> &'a str {
        match self.tokens_of(attribute) {
            [] => "",
            [first, .., last] => &self.text[first.start..last.end],
            [only] => &self.text[only.start..only.end],
        }
    }
}

/// What one string without templates says, its escapes as they are written.
pub(super) fn literal<'a>(text: &'a str, tokens: &[Token]) -> Option<&'a str> {
    match tokens {
        [open, text_token, close]
            if (open.kind, text_token.kind, close.kind)
                == (Kind::QuoteOpen, Kind::Literal, Kind::QuoteClose) =>
        {
            Some(&text[text_token.start..text_token.end])
        }
        _ => None,
    }
}

impl Body {
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|found| found.name == name)
    }

    pub fn blocks_of<'b>(&'b self, kind: &'b str) -> impl Iterator<Item = &'b Block> {
        self.blocks.iter().filter(move |block| block.kind == kind)
    }
}

struct Reader<'a> {
    text: &'a str,
    tokens: &'a [Token],
    at: usize,
}

fn unreadable(at: usize, why: &'static str) -> Unreadable {
    Unreadable { at, why }
}

impl Reader<'_> {
    fn peek(&self) -> Option<Token> {
        self.tokens.get(self.at).copied()
    }

    fn kind(&self) -> Option<Kind> {
        self.peek().map(|token| token.kind)
    }

    fn word(&self, token: Token) -> String {
        self.text[token.start..token.end].to_owned()
    }

    /// Up to the brace that ends it or the end of the file. It recurses by blocks in blocks, whose depth is bounded.
    fn body(&mut self) -> Result<Body, Unreadable> {
        let mut body = Body::default();
        loop {
            let Some(token) = self.peek() else {
                return Ok(body);
            };
            match token.kind {
                Kind::Newline => self.at += 1,
                Kind::Close(_) => return Ok(body),
                Kind::Ident => {
                    self.at += 1;
                    if self.kind() == Some(Kind::Equal) {
                        body.attributes.push(self.attribute(token)?);
                    } else {
                        body.blocks.push(self.block(token)?);
                    }
                    if !matches!(self.kind(), None | Some(Kind::Newline | Kind::Close(_))) {
                        let at = self.peek().map_or(token.start, |next| next.start);
                        return Err(unreadable(at, "a new line is missing here"));
                    }
                }
                _ => {
                    return Err(unreadable(
                        token.start,
                        "neither a block nor an attribute begins here",
                    ));
                }
            }
        }
    }

    fn attribute(&mut self, name: Token) -> Result<Attribute, Unreadable> {
        self.at += 1;
        let begin = self.at;
        let mut depth = 0_usize;
        while let Some(token) = self.peek() {
            match token.kind {
                Kind::Newline if depth == 0 => break,
                Kind::Close(_) if depth == 0 => break,
                Kind::Open(_) | Kind::QuoteOpen | Kind::HeredocOpen | Kind::TemplateOpen => {
                    depth += 1;
                }
                Kind::Close(_) | Kind::QuoteClose | Kind::HeredocClose | Kind::TemplateClose => {
                    depth = depth.saturating_sub(1);
                }
                _ => {}
            }
            self.at += 1;
        }
        let Some(last) = self.tokens[begin..self.at].last() else {
            return Err(unreadable(name.start, "an attribute has no value"));
        };
        Ok(Attribute {
            name: self.word(name),
            bytes: name.start..last.end,
            value: begin..self.at,
        })
    }

    fn block(&mut self, kind: Token) -> Result<Block, Unreadable> {
        let mut labels = Vec::new();
        loop {
            match self.peek() {
                Some(token) if token.kind == Kind::Ident => {
                    labels.push(self.word(token));
                    self.at += 1;
                }
                Some(token) if token.kind == Kind::QuoteOpen => {
                    let quoted = self.tokens.get(self.at..self.at + 3).unwrap_or_default();
                    let Some(label) = literal(self.text, quoted) else {
                        return Err(unreadable(token.start, "a block's label is not plain text"));
                    };
                    labels.push(label.to_owned());
                    self.at += 3;
                }
                Some(token) if token.kind == Kind::Open(b'{') => break,
                other => {
                    let at = other.map_or(kind.start, |token| token.start);
                    return Err(unreadable(
                        at,
                        "neither a block nor an attribute begins here",
                    ));
                }
            }
        }
        self.at += 1;
        let body = self.body()?;
        let Some(close) = self.peek() else {
            return Err(unreadable(kind.start, "a bracket is not closed"));
        };
        self.at += 1;
        Ok(Block {
            kind: self.word(kind),
            labels,
            bytes: kind.start..close.end,
            body,
        })
    }
}
