//! Whether two JSON documents say the same, where numbers count by their value and not by their spelling.

use serde_json::{Number, Value};

/// A number that has another value than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where it stands, as `resources[0].instances[0].attributes.id`.
    pub place: String,
    /// Its value before.
    pub before: String,
    /// Its value now.
    pub after: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Difference {
            place,
            before,
            after,
        } = self;
        write!(f, "{place}: {before} became {after}")
    }
}

/// The numbers whose values differ; any other difference is an error, with the place of the first one.
pub fn changed_numbers(before: &Value, after: &Value) -> Result<Vec<Difference>, String> {
    let mut changed = Vec::new();
    compare("", before, after, &mut changed)?;
    Ok(changed)
}

/// Whether both say the same.
pub fn same(one: &Value, other: &Value) -> bool {
    changed_numbers(one, other).is_ok_and(|changed| changed.is_empty())
}

fn compare(
    place: &str,
    before: &Value,
    after: &Value,
    changed: &mut Vec<Difference>,
) -> Result<(), String> {
    let differs = || {
        Err(if place.is_empty() {
            "everything".to_owned()
        } else {
            place.to_owned()
        })
    };
    match (before, after) {
        (Value::Number(one), Value::Number(other)) => {
            if value_of(one) != value_of(other) {
                changed.push(Difference {
                    place: place.to_owned(),
                    before: one.to_string(),
                    after: other.to_string(),
                });
            }
            Ok(())
        }
        (Value::Array(ones), Value::Array(others)) => {
            if ones.len() != others.len() {
                return differs();
            }
            for (at, (one, other)) in ones.iter().zip(others).enumerate() {
                compare(&format!("{place}[{at}]"), one, other, changed)?;
            }
            Ok(())
        }
        (Value::Object(ones), Value::Object(others)) => {
            if ones.len() != others.len() {
                return differs();
            }
            for (name, one) in ones {
                let inside = if place.is_empty() {
                    name.clone()
                } else {
                    format!("{place}.{name}")
                };
                let Some(other) = others.get(name) else {
                    return Err(inside);
                };
                compare(&inside, one, other, changed)?;
            }
            Ok(())
        }
        _ if before == after => Ok(()),
        _ => differs(),
    }
}

/// A decimal number as sign, significant digits without zeros at either end, and the power of ten of the last digit.
#[derive(Debug, PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i64,
}

fn value_of(number: &Number) -> Decimal {
    let text = number.as_str();
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    // An exponent beyond 64 bits stays one that no other number has.
    let exponent: i64 = exponent.parse().unwrap_or(i64::MAX / 2);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let significant = all.trim_end_matches('0');
    let dropped = all.len() - significant.len();
    let digits = significant.trim_start_matches('0').to_owned();
    if digits.is_empty() {
        return Decimal {
            negative: false,
            digits,
            exponent: 0,
        };
    }
    let shift = |n: usize| i64::try_from(n).unwrap_or(i64::MAX / 4);
    Decimal {
        negative,
        digits,
        exponent: exponent - shift(fraction.len()) + shift(dropped),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_spelling_is_no_difference_and_a_value_is() {
        for (one, other) in [
            ("1.0", "1"),
            ("1e3", "1000"),
            ("1E+3", "1000.00"),
            ("-0", "0"),
            ("0.10", "0.1"),
            ("120e-1", "12"),
            ("0e99", "0"),
        ] {
            assert!(same(&json(one), &json(other)), "{one} {other}");
        }
        for (one, other) in [
            ("18446744073709551615", "18446744073709552000"),
            ("9007199254740993", "9007199254740992"),
            ("1e400", "1e308"),
            ("1", "-1"),
            ("1e3", "1e4"),
        ] {
            assert!(!same(&json(one), &json(other)), "{one} {other}");
        }
    }

    #[test]
    fn a_changed_number_is_named_with_its_place_and_anything_else_that_differs_is_an_error() {
        let before = json(r#"{"a": [{"b": 9007199254740993}], "s": "x"}"#);
        let after = json(r#"{"s": "x", "a": [{"b": 9007199254740992}]}"#);
        let changed = changed_numbers(&before, &after).unwrap();
        assert_eq!(
            changed[0].to_string(),
            "a[0].b: 9007199254740993 became 9007199254740992"
        );
        for (other, place) in [
            (r#"{"a": [{"b": 1}], "s": "y"}"#, "s"),
            (r#"{"a": [], "s": "x"}"#, "a"),
            (r#"{"a": [{"c": 1}], "s": "x"}"#, "a[0].b"),
            (r#"{"a": [{"b": "9007199254740993"}], "s": "x"}"#, "a[0].b"),
            ("[]", "everything"),
        ] {
            assert_eq!(
                changed_numbers(&before, &json(other)),
                Err(place.to_owned())
            );
        }
    }
}
