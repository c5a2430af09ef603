//! What YAML 1.1 takes a plain scalar for.

/// Whether the plain scalar is null.
pub(super) fn is_null(text: &str) -> bool {
    matches!(text, "" | "~") || text.eq_ignore_ascii_case("null")
}

/// Whether the plain scalar is infinite or no number, as go-yaml 2 spells these.
pub(super) fn is_not_finite(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN")
}

/// What Helm's parser, or another one of YAML 1.1, takes the plain scalar for, when that is not text.
///
/// The rules are those of <https://yaml.org/type/> and of go-yaml 2, where either holds. Words count in any mix of
/// upper and lower case, though go-yaml knows only three, since parsers differ in that.
pub(super) fn reading(text: &str) -> Option<&'static str> {
    let lower = text.to_ascii_lowercase();
    if is_null(text) {
        return Some("null");
    }
    match lower.as_str() {
        "y" | "yes" | "true" | "on" => return Some("true"),
        "n" | "no" | "false" | "off" => return Some("false"),
        "<<" => return Some("a merge key"),
        "=" => return Some("a default value"),
        _ => {}
    }
    if is_number(&lower) || is_sexagesimal(&lower) {
        Some("a number")
    } else if is_date(&lower) {
        Some("a date")
    } else {
        None
    }
}

fn is_number(lower: &str) -> bool {
    let unsigned = lower.strip_prefix(['+', '-']).unwrap_or(lower);
    if matches!(unsigned, ".inf" | ".nan") {
        return true;
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return false;
    }
    let plain = unsigned.replace('_', "");
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = plain.strip_prefix(prefix) {
            return !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
        }
    }
    let (mantissa, exponent) = match plain.split_once('e') {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (plain.as_str(), None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_fits = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });
    !(whole.is_empty() && fraction.is_empty())
        && all_digits(whole)
        && all_digits(fraction)
        && exponent_fits
}

/// Base 60, such as `1:30` (<https://yaml.org/type/int.html>): go-yaml leaves it as text, other parsers do not.
fn is_sexagesimal(lower: &str) -> bool {
    let unsigned = lower.strip_prefix(['+', '-']).unwrap_or(lower);
    let whole = match unsigned.split_once('.') {
        Some((whole, fraction)) if fraction.chars().all(|c| c.is_ascii_digit() || c == '_') => {
            whole
        }
        Some(_) => return false,
        None => unsigned,
    };
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or_default();
    let mut rest = parts.peekable();
    first.starts_with(|c: char| c.is_ascii_digit())
        && first.chars().all(|c| c.is_ascii_digit() || c == '_')
        && rest.peek().is_some()
        && rest.all(|part| (1..=2).contains(&part.len()) && all_digits(part))
}

/// `2024-01-01`, alone or with a time behind it (<https://yaml.org/type/timestamp.html>).
fn is_date(lower: &str) -> bool {
    let (date, time) = match lower.find(['t', ' ', '\t']) {
        Some(end) => lower.split_at(end),
        None => (lower, ""),
    };
    let parts: Vec<&str> = date.split('-').collect();
    let [year, month, day] = parts.as_slice() else {
        return false;
    };
    let short = |part: &str| (1..=2).contains(&part.len()) && all_digits(part);
    let time_fits = time.is_empty()
        || time[1..]
            .trim_start()
            .starts_with(|c: char| c.is_ascii_digit());
    year.len() == 4 && all_digits(year) && short(month) && short(day) && time_fits
}

fn all_digits(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit())
}
