//! Single-character corruptions of a registry, the same ones in every run.

/// A registry with everything that one may hold, of which nothing is to be found.
pub const SOUND: &str = include_str!(
    "../../fixtures/registry-check/yaml_passes_anchors_merges_and_quotes/work/values.yaml"
);

/// What is put in: everything that means something in YAML, and characters that do not belong there.
const PUT_IN: [char; 46] = [
    ' ', '\t', '\n', '\r', ':', '#', '-', '?', ',', '[', ']', '{', '}', '&', '*', '!', '|', '>',
    '\'', '"', '%', '@', '`', '~', '=', '<', '.', '/', '\\', '_', '+', '0', '1', '9', 'e', 'x',
    'n', 'y', 'A', 'Z', '\0', '\u{7f}', '\u{85}', '\u{a0}', '\u{2028}', '\u{feff}',
];

/// A text that differs from [`SOUND`] in one character.
pub struct Corruption {
    /// The text.
    pub text: String,
    /// The line where it was changed, from 1.
    pub line: usize,
    /// What was done, for people.
    pub what: String,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Indentation,
    Key,
    Value,
    Quoted,
    Punctuation,
    Comment,
    LineEnd,
}

const KINDS: [Kind; 7] = [
    Kind::Indentation,
    Kind::Key,
    Kind::Value,
    Kind::Quoted,
    Kind::Punctuation,
    Kind::Comment,
    Kind::LineEnd,
];

/// As many corruptions as asked for: each kind of place and each kind of change in turn, the rest by this seed.
pub fn corruptions(count: usize, seed: u64) -> Vec<Corruption> {
    let places = places();
    let mut dice = Dice(seed);
    let mut corruptions = Vec::with_capacity(count);
    while corruptions.len() < count {
        let turn = corruptions.len();
        let kind = KINDS[turn % KINDS.len()];
        let of_kind: Vec<usize> = places
            .iter()
            .filter(|(_, at)| *at == kind)
            .map(|(at, _)| *at)
            .collect();
        let at = of_kind[dice.below(of_kind.len())];
        let with = PUT_IN[dice.below(PUT_IN.len())];
        corruptions.extend(match (turn / KINDS.len()) % 3 {
            0 => corruption(at, None, true),
            1 => corruption(at, Some(with), false),
            _ => corruption(at, Some(with), true),
        });
    }
    corruptions
}

/// The text with `with` at this byte, in the place of what stands there where that is taken out; nothing where that is the same.
fn corruption(at: usize, with: Option<char>, take_out: bool) -> Option<Corruption> {
    let (before, rest) = SOUND.split_at(at);
    let old = rest.chars().next()?;
    if with == Some(old) {
        return None;
    }
    let rest = if take_out {
        &rest[old.len_utf8()..]
    } else {
        rest
    };
    let line = before.matches('\n').count() + 1;
    let what = match (with, take_out) {
        (None, _) => format!("without its {old:?}"),
        (Some(with), true) => format!("with {with:?} for {old:?}"),
        (Some(with), false) => format!("with {with:?} before {old:?}"),
    };
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    Some(Corruption {
        text: [before, &with.map(String::from).unwrap_or_default(), rest].concat(),
        line,
        what: format!("{line}:{column} {what}"),
    })
}

/// Each character's byte and kind.
fn places() -> Vec<(usize, Kind)> {
    let mut places = Vec::new();
    let mut begin = 0;
    for line in SOUND.split_inclusive('\n') {
        let text = line.trim_start();
        let indentation = line.len() - text.len();
        let comment = text.find('#').map_or(line.len(), |at| indentation + at);
        let mut quoted = false;
        for (at, c) in line.char_indices() {
            let is_quote = matches!(c, '"' | '\'') && at < comment;
            quoted ^= is_quote;
            let kind = if c == '\n' {
                Kind::LineEnd
            } else if at < indentation {
                Kind::Indentation
            } else if at >= comment {
                Kind::Comment
            } else if quoted || is_quote {
                Kind::Quoted
            } else if !c.is_alphanumeric() {
                Kind::Punctuation
            } else if line[at..]
                .trim_start_matches(char::is_alphanumeric)
                .starts_with(':')
            {
                Kind::Key
            } else {
                Kind::Value
            };
            places.push((begin + at, kind));
        }
        begin += line.len();
    }
    places
}

/// SplitMix64: the same numbers everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        usize::try_from(z % bound as u64).unwrap()
    }
}
