//! What of the values may leave presync: masked, each cut at a length, all of them together below a bound.

use super::{Attribute, PlanValues, Shown, Side, Values, ValuesOf};

/// Characters of one value.
const LONGEST: usize = 2_000;
/// Bytes of the values of one change.
const OF_ONE: usize = 32 * 1024;
/// Bytes of all of them. A log that rotates while it is written loses lines of a flood, and this comes in one.
const OF_ALL: usize = 512 * 1024;
/// What an attribute takes beside its texts.
const AROUND: usize = 60;

/// How secrets are replaced in a text.
#[derive(Clone, Copy)]
pub struct Masking<'a> {
    /// The text without them.
    pub masked: &'a dyn Fn(&str) -> String,
    /// The longest of them, in bytes: so much of a text's end may be the beginning of one.
    pub longest: usize,
}

impl PlanValues {
    /// The values without the secrets, as many as the bound allows: those of what is destroyed come first, then those of what is
    /// changed in place. Of the others it is told that they are left out.
    pub fn bounded(self, masking: Masking<'_>) -> Values {
        let mut values = self.values;
        let mut left = OF_ALL;
        let mut all: Vec<&mut ValuesOf> = values
            .resources
            .iter_mut()
            .chain(&mut values.outputs)
            .collect();
        all.sort_by_key(|of| of.weight);
        let mut left_out = 0;
        for of in all {
            bound(of, left, masking);
            left_out += usize::from(of.attributes.is_empty() && of.left_out > 0);
            left = left.saturating_sub(of.attributes.iter().map(size).sum());
        }
        values.left_out = left_out;
        values
    }
}

fn bound(of: &mut ValuesOf, left: usize, masking: Masking<'_>) {
    let mut left = left.min(OF_ONE);
    let mut kept = Vec::new();
    let mut attributes = std::mem::take(&mut of.attributes).into_iter();
    for attribute in attributes.by_ref() {
        let attribute = shown(attribute, masking);
        let size = size(&attribute);
        if size > left {
            of.left_out += 1;
            break;
        }
        left -= size;
        kept.push(attribute);
    }
    of.left_out += attributes.count();
    of.attributes = kept;
}

fn size(attribute: &Attribute) -> usize {
    let of = |side: &Side| match side {
        Side::Text(shown) | Side::Json(shown) => shown.text.len(),
        Side::Absent | Side::Hidden | Side::Unknown => 0,
    };
    AROUND + attribute.path.len() + of(&attribute.before) + of(&attribute.after)
}

fn shown(attribute: Attribute, masking: Masking<'_>) -> Attribute {
    let side = |side: Side| match side {
        Side::Text(shown) => Side::Text(cut(&shown.text, masking)),
        Side::Json(shown) => Side::Json(cut(&shown.text, masking)),
        other @ (Side::Absent | Side::Hidden | Side::Unknown) => other,
    };
    Attribute {
        path: cut(&attribute.path, masking).text,
        before: side(attribute.before),
        after: side(attribute.after),
        replaces: attribute.replaces,
    }
}

/// Masked, then cut: a secret across the border is masked whole, or goes.
fn cut(text: &str, masking: Masking<'_>) -> Shown {
    let longest = masking.longest;
    let window = text.floor_char_boundary(LONGEST * 4 + longest * 2);
    let mut masked = (masking.masked)(&text[..window]);
    if window < text.len() {
        // What may be the beginning of a secret that goes on behind the window.
        masked.truncate(masked.floor_char_boundary(masked.len().saturating_sub(longest)));
    }
    let kept = masked.char_indices().nth(LONGEST).map(|(at, _)| at);
    let is_whole = kept.is_none() && window == text.len();
    if is_whole {
        return Shown::whole(masked);
    }
    masked.truncate(kept.unwrap_or(masked.len()));
    let cut = text
        .chars()
        .count()
        .saturating_sub(masked.chars().count())
        .max(1);
    Shown { text: masked, cut }
}
