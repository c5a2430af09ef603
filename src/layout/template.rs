//! Templates with placeholders.

use std::fmt;

use serde::{Deserializer, Serialize, Serializer};

use crate::names::from_text;

/// A key below `layout:` and what its template may and must hold.
pub(super) struct Key {
    pub(super) name: &'static str,
    default: &'static str,
    form: Form,
    allowed: &'static [Placeholder],
    required: &'static [Placeholder],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Segments joined by `/`. A segment holds one placeholder at most, and `{path}` and `{prefix}` stand in one
    /// alone: otherwise two stages could share a path (`{repo}-{stage}` is `a-b-c` for `a`, `b-c` and for `a-b`, `c`).
    Path,
    /// One name of a Kubernetes object.
    Name,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placeholder {
    App,
    Path,
    Prefix,
    Repo,
    Stage,
}

use Placeholder::{App, Path, Prefix, Repo, Stage};

pub(super) const TERRAFORM: Key = Key {
    name: "terraform",
    default: "{path}/terraform",
    form: Form::Path,
    allowed: &[Path, Repo],
    required: &[],
};
pub(super) const CHART: Key = Key {
    name: "chart",
    default: "{path}/chart",
    form: Form::Path,
    allowed: &[Path, Repo],
    required: &[],
};
pub(super) const CONFIG: Key = Key {
    name: "config",
    default: "{path}/config/{stage}",
    form: Form::Path,
    allowed: &[Path, Repo, Stage],
    required: &[Stage],
};
pub(super) const STATE_KEY: Key = Key {
    name: "state_key",
    default: "{prefix}/{repo}/{path}/{stage}/terraform.tfstate",
    form: Form::Path,
    allowed: &[Prefix, Repo, Path, Stage],
    required: &[Repo, Path, Stage],
};
pub(super) const APPLICATION: Key = Key {
    name: "application",
    default: "{app}-{stage}",
    form: Form::Name,
    allowed: &[App, Stage],
    required: &[App, Stage],
};
pub(super) const NAMESPACE: Key = Key {
    name: "namespace",
    default: "{app}-{stage}",
    form: Form::Name,
    allowed: &[App, Stage],
    required: &[App, Stage],
};

impl Placeholder {
    fn name(self) -> &'static str {
        match self {
            App => "app",
            Path => "path",
            Prefix => "prefix",
            Repo => "repo",
            Stage => "stage",
        }
    }
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}}}", self.name())
    }
}

/// What stands for the placeholders; an empty value takes its segment away.
#[derive(Default)]
pub(super) struct Values<'a> {
    pub(super) app: &'a str,
    pub(super) path: &'a str,
    pub(super) prefix: &'a str,
    pub(super) repo: &'a str,
    pub(super) stage: &'a str,
}

impl Values<'_> {
    fn of(&self, placeholder: Placeholder) -> &str {
        match placeholder {
            App => self.app,
            Path => self.path,
            Prefix => self.prefix,
            Repo => self.repo,
            Stage => self.stage,
        }
    }
}

/// A template that fits its key: segments, each a row of pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template(Vec<Vec<Piece>>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Placeholder(Placeholder),
}

impl Template {
    pub(super) fn fill(&self, values: &Values<'_>) -> String {
        let segments: Vec<String> = self
            .0
            .iter()
            .map(|segment| {
                segment
                    .iter()
                    .map(|piece| match piece {
                        Piece::Literal(text) => text.as_str(),
                        Piece::Placeholder(placeholder) => values.of(*placeholder),
                    })
                    .collect::<String>()
            })
            .filter(|segment| !segment.is_empty())
            .collect();
        segments.join("/")
    }

    /// What may stand for `{stage}` in one of the segments of a path that was made of this template.
    pub(super) fn stages_in<'t>(&'t self, path: &'t str) -> impl Iterator<Item = &'t str> {
        let around = self.0.iter().filter_map(|segment| around(segment, Stage));
        around.flat_map(move |(before, after)| {
            let stage = move |segment: &'t str| segment.strip_prefix(before)?.strip_suffix(after);
            path.split('/').filter_map(stage)
        })
    }

    /// What stands for `{repo}`, `{path}` and `{stage}` in a path that was made of this template with this prefix. `{path}` has the
    /// segments that the others leave.
    pub(super) fn taken_apart(&self, prefix: &str, filled: &str) -> Option<[String; 3]> {
        let of_prefix = prefix.split('/').filter(|s| !s.is_empty()).count();
        let long = |segment: &Vec<Piece>, of_path| match segment.as_slice() {
            [Piece::Placeholder(Path)] => of_path,
            [Piece::Placeholder(Prefix)] => of_prefix,
            _ => 1,
        };
        let (least, with_one) = (
            self.0.iter().map(|segment| long(segment, 0)).sum(),
            self.0.iter().map(|segment| long(segment, 1)).sum::<usize>(),
        );
        let mut rest = filled.split('/');
        let left = rest.clone().count().checked_sub(least)?;
        let of_path = left.checked_div(with_one - least).unwrap_or_default();
        let [mut repo, mut path, mut stage] = [const { String::new() }; 3];
        for segment in &self.0 {
            let found: Vec<&str> = rest.by_ref().take(long(segment, of_path)).collect();
            let found = found.join("/");
            for (placeholder, value) in [(Repo, &mut repo), (Path, &mut path), (Stage, &mut stage)]
            {
                if let Some((before, after)) = around(segment, placeholder) {
                    *value = found.strip_prefix(before)?.strip_suffix(after)?.to_owned();
                }
            }
        }
        let values = Values {
            app: "",
            path: &path,
            prefix,
            repo: &repo,
            stage: &stage,
        };
        // Whatever was not looked at above is looked at so.
        (self.fill(&values) == filled).then_some([repo, path, stage])
    }

    fn holds(&self, placeholder: Placeholder) -> bool {
        self.0
            .iter()
            .flatten()
            .any(|piece| *piece == Piece::Placeholder(placeholder))
    }
}

/// The texts before and behind a placeholder that stands in this segment.
fn around<'t>(segment: &'t [Piece], placeholder: Placeholder) -> Option<(&'t str, &'t str)> {
    let is = |piece: &Piece| *piece == Piece::Placeholder(placeholder);
    let at = segment.iter().position(is)?;
    let text = |piece: Option<&'t Piece>| match piece {
        Some(Piece::Literal(text)) => text.as_str(),
        _ => "",
    };
    let before = at.checked_sub(1).and_then(|before| segment.get(before));
    Some((text(before), text(segment.get(at + 1))))
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, segment) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("/")?;
            }
            for piece in segment {
                match piece {
                    Piece::Literal(text) => f.write_str(text)?,
                    Piece::Placeholder(placeholder) => write!(f, "{placeholder}")?,
                }
            }
        }
        Ok(())
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Why a text is no template for its key, or no pattern.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the template {text:?} of layout.{key} {fault}")]
pub(super) struct TemplateError {
    pub(super) key: &'static str,
    pub(super) text: String,
    pub(super) fault: String,
}

impl Key {
    /// The built-in template. That it parses is tested, so the empty template can never be seen.
    pub(super) fn default_template(&self) -> Template {
        self.parse(self.default)
            .unwrap_or_else(|_| Template(Vec::new()))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        &self,
        deserializer: D,
    ) -> Result<Template, D::Error> {
        from_text(deserializer, |text| self.parse(text))
    }

    pub(super) fn parse(&self, text: &str) -> Result<Template, TemplateError> {
        self.parse_segments(text).map_err(|fault| TemplateError {
            key: self.name,
            text: text.to_owned(),
            fault,
        })
    }

    fn parse_segments(&self, text: &str) -> Result<Template, String> {
        if text.is_empty() {
            return Err("is empty".to_owned());
        }
        if self.form == Form::Name && text.contains('/') {
            return Err("has a \"/\", which no name of a Kubernetes object may hold".to_owned());
        }
        let segments = text
            .split('/')
            .map(|segment| self.parse_segment(segment))
            .collect::<Result<_, _>>()?;
        let template = Template(segments);
        match self.required.iter().find(|p| !template.holds(**p)) {
            Some(missing) => Err(format!(
                "lacks {missing}, without which two stages could be taken for one another"
            )),
            None => Ok(template),
        }
    }

    fn parse_segment(&self, segment: &str) -> Result<Vec<Piece>, String> {
        if segment.is_empty() {
            return Err(
                "has an empty segment; it must begin and end without \"/\" and not hold \"//\""
                    .to_owned(),
            );
        }
        let pieces = self.pieces(segment)?;
        let placeholders = pieces
            .iter()
            .filter(|piece| matches!(piece, Piece::Placeholder(_)))
            .count();
        if self.form == Form::Name {
            return Ok(pieces);
        }
        if placeholders > 1 {
            return Err(format!(
                "has two placeholders in the segment {segment:?}; put \"/\" between them, since different stages could get the same path"
            ));
        }
        for alone in [Path, Prefix] {
            if pieces.len() > 1 && pieces.contains(&Piece::Placeholder(alone)) {
                return Err(format!(
                    "has {alone} beside other text in the segment {segment:?}; it must stand between slashes, since it goes with its slash where it is empty"
                ));
            }
        }
        let hides = segment.starts_with('.') && placeholders > 0;
        if hides
            || segment.starts_with('-')
            || segment.contains("..")
            || matches!(segment, "." | ".git")
            || segment.ends_with('.')
            || segment.ends_with(".lock")
        {
            return Err(format!(
                "has the segment {segment:?}; a segment must not be \".\" or \".git\", hold \"..\", begin with \"-\", end with \".\" or \".lock\", or begin with \".\" before a placeholder"
            ));
        }
        Ok(pieces)
    }

    fn pieces(&self, segment: &str) -> Result<Vec<Piece>, String> {
        let mut pieces = Vec::new();
        let mut rest = segment;
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('{') {
                let Some((name, behind)) = after.split_once('}') else {
                    return Err("has a \"{\" without its \"}\"".to_owned());
                };
                pieces.push(Piece::Placeholder(self.placeholder(name)?));
                rest = behind;
            } else {
                let (literal, behind) = rest.split_at(rest.find('{').unwrap_or(rest.len()));
                self.check_literal(literal)?;
                pieces.push(Piece::Literal(literal.to_owned()));
                rest = behind;
            }
        }
        Ok(pieces)
    }

    fn placeholder(&self, name: &str) -> Result<Placeholder, String> {
        self.allowed
            .iter()
            .copied()
            .find(|placeholder| placeholder.name() == name)
            .ok_or_else(|| {
                let known: Vec<String> = self.allowed.iter().map(ToString::to_string).collect();
                format!(
                    "has the placeholder \"{{{}}}\"; known here are {}",
                    name.escape_debug(),
                    known.join(", ")
                )
            })
    }

    fn check_literal(&self, literal: &str) -> Result<(), String> {
        let allowed = |c: char| match self.form {
            Form::Path => c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'),
            Form::Name => c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-',
        };
        match literal.chars().find(|c| !allowed(*c)) {
            Some(c) => Err(format!(
                "has the character {:?}; beside placeholders it may hold {}",
                c.to_string(),
                match self.form {
                    Form::Path => "letters, digits, \".\", \"_\", \"-\" and \"/\"",
                    Form::Name => "a-z, 0-9 and \"-\"",
                }
            )),
            None => Ok(()),
        }
    }
}
