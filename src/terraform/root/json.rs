//! The keys of a file in Terraform's JSON syntax. Terraform takes what a JSON library does not: a key twice in one object,
//! lists in lists around every block, halves of surrogate pairs, bytes that are not UTF-8, any depth. So this reads strings
//! and brackets alone, and never gives a file up: what is no JSON at all, Terraform refuses.

/// As deep as any caller asks: `module`, its name, `source`.
const DEEPEST_PATH: usize = 3;

/// One key of an object.
#[derive(Debug, PartialEq)]
pub(super) struct Key {
    /// The keys that lead here through objects, this one last; lists between them do not count.
    pub path: Vec<String>,
    /// Its line, from 1.
    pub line: usize,
    /// Its value, where that is one string.
    pub text: Option<String>,
}

/// Every key at most three objects deep, in the order of the file.
pub(super) fn keys(bytes: &[u8]) -> Vec<Key> {
    let mut found: Vec<Key> = Vec::new();
    // One entry for each open bracket: for an object its current key, for a list nothing.
    let mut open: Vec<Option<String>> = Vec::new();
    let (mut at, mut line) = (0, 1);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\n' => line += 1,
            b'{' => open.push(Some(String::new())),
            b'[' => open.push(None),
            b'}' | b']' => {
                open.pop();
            }
            b'"' => {
                let end = string_end(bytes, at);
                let text = text_of(&bytes[at..end]);
                if is_key(&bytes[end..]) {
                    if let Some(Some(current)) = open.last_mut() {
                        *current = text;
                    }
                    let path: Vec<String> = open
                        .iter()
                        .flatten()
                        .take(DEEPEST_PATH + 1)
                        .cloned()
                        .collect();
                    if path.len() <= DEEPEST_PATH {
                        found.push(Key {
                            path,
                            line,
                            text: None,
                        });
                    }
                } else if open.iter().flatten().count() <= DEEPEST_PATH
                    && let Some(Some(_)) = open.last()
                    && let Some(key) = found.last_mut()
                {
                    key.text = Some(text);
                }
                line += bytes[at..end].iter().filter(|b| **b == b'\n').count();
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// The place after the string that begins at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// What a string with its quotes says. A key that serde_json does not read (half a surrogate pair) is none that we look for.
fn text_of(quoted: &[u8]) -> String {
    let text = String::from_utf8_lossy(quoted);
    serde_json::from_str(&text).unwrap_or_else(|_| text.into_owned())
}

fn is_key(after: &[u8]) -> bool {
    after.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b':')
}
