//! Which local modules a root names.

use std::collections::BTreeSet;

use super::{json, parse, without_bom};

/// Folders below the clone that this root's modules name by a relative path and that lie outside `inside`
/// (`../../modules/x`), as paths in the clone. What names a path in another way is not found here.
pub fn module_sources(files: &[(String, Vec<u8>)], folder: &str) -> BTreeSet<String> {
    let sources = files.iter().flat_map(|(name, bytes)| {
        if name.ends_with(".tf.json") || name.ends_with(".tofu.json") {
            json_sources(bytes)
        } else if name.ends_with(".tf") || name.ends_with(".tofu") {
            hcl_sources(bytes)
        } else {
            Vec::new()
        }
    });
    sources
        .filter(|source| source.starts_with("./") || source.starts_with("../"))
        .filter_map(|source| join_in_clone(folder, &source))
        .collect()
}

/// Bytes that are not UTF-8 stand in comments and strings; the rest of the file counts all the same.
fn hcl_sources(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let Ok(body) = parse(without_bom(&text)) else {
        return Vec::new();
    };
    body.get_blocks("module")
        .filter_map(|module| module.body.get_attribute("source")?.value.as_str())
        .map(ToOwned::to_owned)
        .collect()
}

fn json_sources(bytes: &[u8]) -> Vec<String> {
    let keys = json::keys(bytes).into_iter();
    keys.filter(|key| matches!(&key.path[..], [module, _, source] if module == "module" && source == "source"))
        .filter_map(|key| key.text)
        .collect()
}

/// `folder` joined with a relative path, both in the clone; `None` when it leaves the clone.
pub fn join_in_clone(folder: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|p| !p.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
