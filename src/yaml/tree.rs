//! From the parser's events to the tree. Nothing here recurses: open collections lie on a stack of bounded height.

use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span};

use super::dialect::{self, Extent, Until};
use super::{MAX_DEPTH, MAX_SIZE, Node, Place, Value, YamlError, misread};

/// A finished value with its extent.
#[derive(Clone)]
struct Built {
    node: Node,
    /// Values in it, itself included.
    size: usize,
    /// Levels of collections in it; 0 for a scalar.
    height: usize,
}

/// A collection whose end has not been seen.
struct Open {
    place: Place,
    anchor: usize,
    items: Items,
    size: usize,
    height: usize,
}

enum Items {
    Sequence(Vec<Node>),
    Mapping {
        entries: Vec<(Node, Node)>,
        key: Option<Node>,
    },
}

#[derive(Default)]
struct Tree {
    open: Vec<Open>,
    /// Finished values by the number that the parser gave their anchor; a name used again gets a new number.
    anchors: HashMap<usize, Built>,
    root: Option<Node>,
    size: usize,
    /// Every scalar's place in the text.
    scalars: Vec<Extent>,
}

pub(super) fn parse(text: &str) -> Result<Node, YamlError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    refuse_characters(text)?;
    refuse_directives(text)?;
    let mut tree = Tree::default();
    let mut documents = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = match event {
            Ok(event) => event,
            Err(error) => {
                // What Helm does not read may be the cause, such as an anchor of which the parser has read a part.
                let until = Until::Character(error.marker().index());
                let open = dialect::refuse(text, &tree.scalars, until)?;
                return Err(YamlError::Syntax {
                    place: place(error.marker()),
                    complaint: error.info().to_owned(),
                    open: open.filter(|(_, at)| at.line < error.marker().line()),
                });
            }
        };
        if matches!(event, Event::DocumentStart(_)) {
            documents += 1;
            if documents > 1 {
                return Err(YamlError::SecondDocument {
                    place: place(&span.start),
                });
            }
        }
        tree.take(event, span)?;
    }
    dialect::refuse(text, &tree.scalars, Until::End)?;
    Ok(tree.root.unwrap_or_else(|| null(Place::START)))
}

fn place(marker: &Marker) -> Place {
    Place {
        line: marker.line().max(1),
        column: marker.col() + 1,
    }
}

fn null(place: Place) -> Node {
    Node {
        place,
        value: Value::Scalar {
            text: String::new(),
            plain: true,
        },
    }
}

/// Refuses control characters (<https://yaml.org/spec/1.2.2/#51-character-set>), byte order marks inside the text, and
/// the three characters that end a line in YAML 1.1 and not in 1.2.
fn refuse_characters(text: &str) -> Result<(), YamlError> {
    let mut at = Place::START;
    for c in text.chars() {
        let refused = (c.is_control() && !matches!(c, '\t' | '\n' | '\r'))
            || matches!(
                c,
                '\u{feff}' | '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}'
            );
        if refused {
            return Err(YamlError::Character {
                place: at,
                character: c.to_string(),
            });
        }
        if c == '\n' {
            at.line += 1;
            at.column = 1;
        } else {
            at.column += 1;
        }
    }
    Ok(())
}

fn refuse_directives(text: &str) -> Result<(), YamlError> {
    let first = text
        .lines()
        .enumerate()
        .find(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    match first {
        Some((at, line)) if line.starts_with('%') => Err(YamlError::Directive {
            place: Place {
                line: at + 1,
                column: 1,
            },
        }),
        _ => Ok(()),
    }
}

impl Tree {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), YamlError> {
        let place = place(&span.start);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.scalars.push(Extent { span, style });
                let as_text = match &tag {
                    None => false,
                    Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => true,
                    Some(_) => return Err(YamlError::Tag { place }),
                };
                let plain = style == ScalarStyle::Plain && !as_text;
                if plain && misread::is_not_finite(&text) && !self.is_key() {
                    return Err(dialect::refused(
                        place,
                        "a number that is not finite, since JSON has none",
                        "put it in quotes to have it as text",
                    ));
                }
                let size = 1 + text.len() / 64;
                let value = Value::Scalar {
                    text: text.into_owned(),
                    plain,
                };
                self.grow(size, place)?;
                self.finish(
                    anchor,
                    Built {
                        node: Node { place, value },
                        size,
                        height: 0,
                    },
                )
            }
            Event::SequenceStart(anchor, tag) => {
                self.begin(place, anchor, tag.is_some(), Items::Sequence(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                let items = Items::Mapping {
                    entries: Vec::new(),
                    key: None,
                };
                self.begin(place, anchor, tag.is_some(), items)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => {
                let Some(anchored) = self.anchors.get(&anchor) else {
                    return Err(YamlError::AliasInItself { place });
                };
                if matches!(anchored.node.value, Value::Sequence(_)) && self.is_merged() {
                    let found = "an alias of a list";
                    return Err(YamlError::MergeOfOther { place, found });
                }
                // Asked before the copy, so that a refused alias costs nothing.
                if self.size + anchored.size > MAX_SIZE {
                    return Err(YamlError::TooLarge { place });
                }
                let built = anchored.clone();
                if self.open.len() + built.height > MAX_DEPTH {
                    return Err(YamlError::TooDeep { place });
                }
                self.grow(built.size, place)?;
                self.finish(0, built)
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
        }
    }

    /// Whether what comes next is a mapping's key.
    fn is_key(&self) -> bool {
        let open = self.open.last().map(|open| &open.items);
        matches!(open, Some(Items::Mapping { key: None, .. }))
    }

    /// Whether what comes next is the value of a merge key.
    fn is_merged(&self) -> bool {
        let open = self.open.last().map(|open| &open.items);
        matches!(open, Some(Items::Mapping { key: Some(key), .. }) if is_merge(key))
    }

    fn grow(&mut self, by: usize, place: Place) -> Result<(), YamlError> {
        self.size += by;
        if self.size > MAX_SIZE {
            return Err(YamlError::TooLarge { place });
        }
        Ok(())
    }

    fn begin(
        &mut self,
        place: Place,
        anchor: usize,
        tagged: bool,
        items: Items,
    ) -> Result<(), YamlError> {
        if tagged {
            return Err(YamlError::Tag { place });
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(YamlError::TooDeep { place });
        }
        self.grow(1, place)?;
        self.open.push(Open {
            place,
            anchor,
            items,
            size: 1,
            height: 1,
        });
        Ok(())
    }

    fn end(&mut self) -> Result<(), YamlError> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let value = match open.items {
            Items::Sequence(items) => Value::Sequence(items),
            Items::Mapping { entries, .. } => Value::Mapping(merged(entries)?),
        };
        self.finish(
            open.anchor,
            Built {
                node: Node {
                    place: open.place,
                    value,
                },
                size: open.size,
                height: open.height,
            },
        )
    }

    fn finish(&mut self, anchor: usize, built: Built) -> Result<(), YamlError> {
        if anchor > 0 {
            self.anchors.insert(anchor, built.clone());
        }
        let Some(parent) = self.open.last_mut() else {
            self.root = Some(built.node);
            return Ok(());
        };
        parent.size += built.size;
        parent.height = parent.height.max(built.height + 1);
        match &mut parent.items {
            Items::Sequence(items) => items.push(built.node),
            Items::Mapping { entries, key } => match key.take() {
                Some(key) => entries.push((key, built.node)),
                None if built.node.is_null() => {
                    return Err(dialect::refused(
                        built.node.place,
                        "a key that is null",
                        "give it a name, or put it in quotes",
                    ));
                }
                None if matches!(built.node.value, Value::Scalar { .. }) => *key = Some(built.node),
                None => {
                    return Err(YamlError::KeyNotScalar {
                        place: built.node.place,
                        found: built.node.kind(),
                    });
                }
            },
        }
        Ok(())
    }
}

fn is_merge(key: &Node) -> bool {
    matches!(&key.value, Value::Scalar { text, plain: true } if text == "<<")
}

/// Refuses doubled keys and applies `<<`.
///
/// go-yaml 2 sets keys in the order of the file, so a merge overwrites what stands above it and yields to what stands
/// below (<https://github.com/kubernetes-sigs/yaml/blob/master/goyaml.v2/decode.go>, `mapping`), while
/// <https://yaml.org/type/merge.html> has own keys win always. Where the two differ, the merge is refused. Of several
/// merged mappings the first that has a key wins, in both.
fn merged(entries: Vec<(Node, Node)>) -> Result<Vec<(Node, Node)>, YamlError> {
    let mut own: HashMap<String, Place> = HashMap::new();
    for (key, _) in &entries {
        if let Some(first) = own.insert(key.raw_text().to_owned(), key.place) {
            return Err(YamlError::DuplicateKey {
                place: key.place,
                key: key.raw_text().to_owned(),
                first,
            });
        }
    }
    if !entries.iter().any(|(key, _)| is_merge(key)) {
        return Ok(entries);
    }
    let mut above: HashMap<String, Place> = HashMap::new();
    let mut result: Vec<(Node, Node)> = Vec::new();
    for (key, value) in entries {
        if !is_merge(&key) {
            above.insert(key.raw_text().to_owned(), key.place);
            result.push((key, value));
            continue;
        }
        let mut taken: HashSet<String> = HashSet::new();
        for (name, merged_value) in sources(value)?.into_iter().flatten() {
            if let Some(own) = above.get(name.raw_text()) {
                return Err(YamlError::MergeAfterKey {
                    place: key.place,
                    key: name.raw_text().to_owned(),
                    own: *own,
                });
            }
            if !own.contains_key(name.raw_text()) && taken.insert(name.raw_text().to_owned()) {
                result.push((name, merged_value));
            }
        }
    }
    Ok(result)
}

/// The mappings that a merge key's value names.
fn sources(value: Node) -> Result<Vec<Vec<(Node, Node)>>, YamlError> {
    let refuse = |place, found| YamlError::MergeOfOther { place, found };
    match value.value {
        Value::Mapping(entries) => Ok(vec![entries]),
        Value::Sequence(items) => items
            .into_iter()
            .map(|item| match item.value {
                Value::Mapping(entries) => Ok(entries),
                Value::Sequence(_) => Err(refuse(item.place, "a list")),
                Value::Scalar { .. } => Err(refuse(item.place, "a single value")),
            })
            .collect(),
        Value::Scalar { .. } => Err(refuse(value.place, "a single value")),
    }
}
