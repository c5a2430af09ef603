//! Text from outside, made harmless for the form that it is written in.

/// What a character is written as where it would not be seen, or would move others: controls, what turns the direction of
/// writing, what has no width.
fn written(c: char) -> Option<String> {
    let is_invisible = matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}');
    ((c.is_control() && c != '\t') || is_invisible).then(|| format!("U+{:04X}", u32::from(c)))
}

/// A piece of a text: characters as they are, or one that is written out.
pub(super) enum Piece<'a> {
    Plain(&'a str),
    Written(String),
}

/// The text in pieces.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for (at, c) in text.char_indices() {
        if let Some(written) = written(c) {
            if start < at {
                pieces.push(Piece::Plain(&text[start..at]));
            }
            pieces.push(Piece::Written(written));
            start = at + c.len_utf8();
        }
    }
    if start < text.len() {
        pieces.push(Piece::Plain(&text[start..]));
    }
    pieces
}

/// The text with what is not seen in angle brackets.
pub(super) fn visible(text: &str) -> String {
    let written = pieces(text).into_iter().map(|piece| match piece {
        Piece::Plain(plain) => plain.to_owned(),
        Piece::Written(written) => format!("⟨{written}⟩"),
    });
    written.collect()
}

/// For HTML, in a text and in an attribute between double quotes.
pub(super) fn in_html(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Written(written) => html.push_str(&format!("<i>⟨{written}⟩</i>")),
            Piece::Plain(plain) => {
                for c in plain.chars() {
                    match c {
                        '&' => html.push_str("&amp;"),
                        '<' => html.push_str("&lt;"),
                        '>' => html.push_str("&gt;"),
                        '"' => html.push_str("&quot;"),
                        '\'' => html.push_str("&#39;"),
                        c => html.push(c),
                    }
                }
            }
        }
    }
    html
}

/// For Markdown, as text within a line: no mark-up of it is heard, no HTML, no address is made a link, nobody is called.
pub(super) fn in_markdown(text: &str) -> String {
    let text = visible(text);
    let mut markdown = String::with_capacity(text.len());
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    let mut rest = text.chars().enumerate().peekable();
    while let Some((at, c)) = rest.next() {
        let next = rest.peek().map(|(_, next)| *next);
        match c {
            // Within a word it begins no emphasis.
            '_' if in_word(markdown.chars().last()) && in_word(next) => markdown.push('_'),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '&'
            | '!' | '$' => markdown.extend(['\\', c]),
            '-' | '+' | '=' if at == 0 => markdown.extend(['\\', c]),
            '.' | ')' if digits > 0 && at == digits => markdown.extend(['\\', c]),
            // An empty comment parts what would be made a link or a call of.
            '@' => markdown.push_str("@<!-- -->"),
            ':' if next == Some('/') => markdown.push_str(":<!-- -->"),
            '.' if ends_with_www(&markdown) => markdown.push_str("<!-- -->."),
            c => markdown.push(c),
        }
    }
    markdown
}

fn in_word(c: Option<char>) -> bool {
    c.is_some_and(char::is_alphanumeric)
}

fn ends_with_www(text: &str) -> bool {
    let mut end = text.chars().rev();
    (0..3).all(|_| end.next().is_some_and(|c| c.eq_ignore_ascii_case(&'w')))
}

/// For Markdown, as code within a line or a table's cell.
pub(super) fn as_code(text: &str) -> String {
    let text = visible(text);
    if text.is_empty() {
        return String::new();
    }
    if text.contains('|') {
        // It would end a cell, also within a code span, and its own escape can be escaped.
        return format!("<code>{}</code>", in_entities(&text));
    }
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    let at_edge = |c: char| c == '`' || c == ' ';
    let pad = match text.starts_with(at_edge) || text.ends_with(at_edge) {
        true => " ",
        false => "",
    };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// Everything but letters, digits and the plainest signs by its number: no mark-up is left in it.
fn in_entities(text: &str) -> String {
    let written = text.chars().map(|c| match c {
        c if c.is_alphanumeric() || matches!(c, ' ' | ',' | '/') => c.to_string(),
        c => format!("&#{};", u32::from(c)),
    });
    written.collect()
}
