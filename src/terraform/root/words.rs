//! What a file in Terraform's own syntax might say, where our parser cannot tell: words alone, comments and strings as well.

use super::line_at;

/// The first mention of `backend` or `cloud` that could begin a block, with its line.
pub(super) fn block_words(bytes: &[u8]) -> Option<(usize, &'static str)> {
    (0..bytes.len()).find_map(|at| {
        let word = ["backend", "cloud"]
            .into_iter()
            .find(|word| bytes[at..].starts_with(word.as_bytes()))?;
        let alone = at == 0 || !in_word(bytes[at - 1]);
        (alone && may_be_header(&bytes[at + word.len()..])).then(|| (line_at(bytes, at), word))
    })
}

/// Whether a label, an opening brace or a comment follows. Prose may look the same, which is the safe side to be wrong on.
fn may_be_header(after: &[u8]) -> bool {
    let blanks = |b: &&u8| matches!(b, b' ' | b'\t' | b'\r');
    let skipped = after.iter().take_while(blanks).count();
    match after.get(skipped) {
        Some(b'"' | b'{' | b'/') => true,
        Some(byte) if skipped == 0 => !byte.is_ascii(),
        Some(byte) => in_word(*byte) || !byte.is_ascii(),
        None => false,
    }
}

/// Whether a line begins as a heredoc's end and goes on: for Terraform the heredoc goes on as well, for our parser it ends.
pub(super) fn doubtful_heredoc(text: &str) -> bool {
    let markers: Vec<&str> = text.split("<<").skip(1).map(identifier).collect();
    text.lines().map(str::trim).any(|line| {
        let first = identifier(line);
        !first.is_empty() && first.len() < line.len() && markers.contains(&first)
    })
}

fn identifier(text: &str) -> &str {
    let text = text.strip_prefix('-').unwrap_or(text);
    let end = text.find(|c: char| c.is_ascii() && !in_word(c as u8));
    &text[..end.unwrap_or(text.len())]
}

fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}
