//! What YAML 1.2 allows, or our parser lets pass, and Helm's parser does not read: go-yaml 2, which follows YAML 1.1
//! (<https://github.com/kubernetes-sigs/yaml/blob/master/goyaml.v2/scannerc.go>).
//!
//! The parser gives values, and these are faults of what stands between them. So the text is walked once more, with the parser's word for
//! which parts of it are scalars.

use std::iter::Peekable;
use std::str::Chars;

use saphyr_parser::{ScalarStyle, Span};

use super::{Place, YamlError};

/// Where a scalar stands, with what is written before it of anchor and tag.
pub(super) struct Extent {
    pub(super) span: Span,
    pub(super) style: ScalarStyle,
}

/// How far to look.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// To the end of the text, all of whose scalars are known.
    End,
    /// To this character, where the parser gave up.
    Character(usize),
}

/// Refuses what Helm does not read, and gives the innermost `{` or `[` that is open at the end. `scalars` stand in the order of the text.
pub(super) fn refuse(
    text: &str,
    scalars: &[Extent],
    until: Until,
) -> Result<Option<(char, Place)>, YamlError> {
    let mut walk = Walk {
        chars: text.chars().peekable(),
        index: 0,
        place: Place::START,
        levels: Vec::new(),
        begin: Begin::Line,
    };
    let mut scalars = scalars
        .iter()
        .filter(|scalar| !scalar.span.is_empty())
        .peekable();
    let mut is_block = false;
    loop {
        if let Some(scalar) = scalars.peek()
            && walk.index >= scalar.span.start.index()
        {
            walk.scalar(scalar)?;
            scalars.next();
            is_block = false;
        } else if matches!(until, Until::Character(at) if walk.index >= at && scalars.peek().is_none())
        {
            return Ok(walk.levels.last().map(|level| level.opened));
        } else if is_block && scalars.peek().is_some() {
            // Between the head of a block scalar and its first line.
            walk.next();
        } else {
            match walk.structure()? {
                Some(found) => is_block = found == Found::BlockScalar,
                None => return Ok(walk.levels.last().map(|level| level.opened)),
            }
        }
    }
}

/// What may follow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begin {
    /// The indentation of a line.
    Line,
    /// The space behind a `-`, a `?` or a `:` that stands at the beginning of a line.
    Entry,
    /// Something behind other things.
    Within,
}

#[derive(PartialEq, Eq)]
enum Found {
    /// The `|` or `>` in front of a block scalar.
    BlockScalar,
    /// Something else.
    Other,
}

/// One `{` or `[` that is open.
struct Level {
    /// Which it is, and where.
    opened: (char, Place),
    /// Where the entry began that is being read, until its `:`.
    key: Option<Place>,
    /// Whether the entry has a `?`.
    is_explicit: bool,
}

impl Level {
    fn new(opened: (char, Place)) -> Self {
        Self {
            opened,
            key: None,
            is_explicit: false,
        }
    }
}

struct Walk<'a> {
    chars: Peekable<Chars<'a>>,
    /// How many characters were read.
    index: usize,
    /// Where the next one stands.
    place: Place,
    levels: Vec<Level>,
    begin: Begin,
}

impl Walk<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.chars.next()?;
        self.index += 1;
        let ends_line = c == '\n' || (c == '\r' && self.chars.peek() != Some(&'\n'));
        if ends_line {
            self.place.line += 1;
            self.place.column = 1;
            self.begin = Begin::Line;
        } else {
            self.place.column += 1;
        }
        Some(c)
    }

    /// Reads the scalar that stands here.
    fn scalar(&mut self, scalar: &Extent) -> Result<(), YamlError> {
        while let Some(mark @ ('&' | '!' | ' ' | '\t' | '\n' | '\r')) = self.chars.peek().copied() {
            if matches!(scalar.style, ScalarStyle::Literal | ScalarStyle::Folded)
                || self.index >= scalar.span.end.index()
            {
                break;
            }
            self.property(mark)?;
        }
        let place = self.place;
        self.start_node(place);
        match (scalar.style, self.chars.peek()) {
            (ScalarStyle::Plain, Some('|' | '>')) => {
                return Err(refused(
                    place,
                    "a text without quotes that begins with | or >",
                    "put it in quotes",
                ));
            }
            (ScalarStyle::Plain, Some('?' | ':'))
                if !self.levels.is_empty() && self.index < scalar.span.end.index() =>
            {
                return Err(refused(
                    place,
                    "a text without quotes that begins with ? or : within braces or brackets",
                    "put it in quotes",
                ));
            }
            _ => {}
        }
        while self.index < scalar.span.end.index() {
            let place = self.place;
            if self.next() == Some('\\')
                && scalar.style == ScalarStyle::DoubleQuoted
                && self.next() == Some('/')
            {
                return Err(refused(place, "the escape \\/", "write / alone"));
            }
        }
        // The extent of a block scalar ends where the next line's content begins.
        if !matches!(scalar.style, ScalarStyle::Literal | ScalarStyle::Folded) {
            self.begin = Begin::Within;
        }
        Ok(())
    }

    /// Reads an anchor, a tag, or the space between them and their scalar.
    fn property(&mut self, mark: char) -> Result<(), YamlError> {
        let place = self.place;
        self.next();
        match mark {
            '&' => self.name(place),
            '!' => {
                while self.chars.next_if(|c| !ends_name(*c)).is_some() {
                    self.index += 1;
                    self.place.column += 1;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Reads the name of an anchor or of an alias whose mark stands at `place`.
    fn name(&mut self, place: Place) -> Result<(), YamlError> {
        while let Some(c) = self.chars.peek().copied().filter(|c| !ends_name(*c)) {
            if !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-') {
                return Err(refused(
                    place,
                    "an anchor's name of other characters than letters, digits, _ and -",
                    "rename it here and where it is used",
                ));
            }
            self.next();
        }
        Ok(())
    }

    /// Reads one piece of what is no scalar; nothing at the end.
    fn structure(&mut self) -> Result<Option<Found>, YamlError> {
        let place = self.place;
        let Some(c) = self.next() else {
            return Ok(None);
        };
        match c {
            '\t' if self.levels.is_empty() && self.begin != Begin::Within => {
                return Err(refused(
                    place,
                    "a tab at the beginning of a line, or behind the \"-\" of an entry",
                    "write spaces, or nothing on a blank line",
                ));
            }
            ' ' | '\t' | '\n' | '\r' => return Ok(Some(Found::Other)),
            '#' => self.comment(),
            '&' | '*' => {
                self.start_node(place);
                self.name(place)?;
            }
            '{' | '[' => {
                self.start_node(place);
                self.levels.push(Level::new((c, place)));
            }
            '}' | ']' => drop(self.levels.pop()),
            ',' => {
                if let Some(level) = self.levels.last_mut() {
                    *level = Level::new(level.opened);
                }
            }
            ':' => self.value(place)?,
            '?' => {
                if let Some(level) = self.levels.last_mut() {
                    level.is_explicit = true;
                }
            }
            _ => {}
        }
        let follows_indentation = self.begin != Begin::Within;
        self.begin = match c {
            '-' | '?' | ':' if follows_indentation => Begin::Entry,
            '#' => self.begin,
            _ => Begin::Within,
        };
        let is_block = matches!(c, '|' | '>') && self.levels.is_empty();
        Ok(Some(if is_block {
            Found::BlockScalar
        } else {
            Found::Other
        }))
    }

    fn comment(&mut self) {
        while self.chars.peek().is_some_and(|c| !matches!(c, '\n' | '\r')) {
            self.next();
        }
    }

    /// A node begins here, which may turn out to be a key.
    fn start_node(&mut self, place: Place) {
        if let Some(level) = self.levels.last_mut() {
            level.key.get_or_insert(place);
        }
    }

    /// A `:` stands here.
    fn value(&mut self, place: Place) -> Result<(), YamlError> {
        let Some(level) = self.levels.last_mut() else {
            return Ok(());
        };
        let explicit = std::mem::take(&mut level.is_explicit);
        match level.key.take() {
            Some(key) if key.line != place.line && !explicit => Err(refused(
                key,
                "a key that does not stand on one line with its \":\"",
                "write both on one line",
            )),
            _ => Ok(()),
        }
    }
}

fn ends_name(c: char) -> bool {
    c.is_whitespace() || matches!(c, ',' | '[' | ']' | '{' | '}')
}

pub(super) fn refused(place: Place, what: &'static str, remedy: &'static str) -> YamlError {
    YamlError::Unread {
        place,
        what,
        remedy,
    }
}
