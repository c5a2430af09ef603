//! Which files of a folder are a root's configuration.

use std::collections::BTreeSet;
use std::path::Path;

use crate::terraform::Flavour;

use super::RootError;

/// The names of what is no folder.
pub(super) fn file_names(folder: &Path) -> Result<BTreeSet<String>, RootError> {
    let read = |source| RootError::Read {
        path: folder.to_owned(),
        source,
    };
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(folder).map_err(read)? {
        let entry = entry.map_err(read)?;
        if !entry.path().is_dir() {
            names.insert(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(names)
}

/// The files that the program loads. Both leave out hidden files and editors' leftovers; OpenTofu takes `x.tofu` instead
/// of `x.tf` (<https://opentofu.org/docs/language/files/>).
pub(in crate::terraform) fn configuration_files(
    names: &BTreeSet<String>,
    flavour: Flavour,
) -> BTreeSet<String> {
    let ignored = |name: &str| {
        name.starts_with('.')
            || name.ends_with('~')
            || (name.starts_with('#') && name.ends_with('#'))
    };
    names
        .iter()
        .filter(|name| !ignored(name))
        .filter(|name| match flavour {
            Flavour::Terraform => name.ends_with(".tf") || name.ends_with(".tf.json"),
            Flavour::OpenTofu => {
                let replaced = |extension: &str, by: &str| {
                    name.strip_suffix(extension)
                        .is_some_and(|base| names.contains(&format!("{base}{by}")))
                };
                name.ends_with(".tofu")
                    || name.ends_with(".tofu.json")
                    || (name.ends_with(".tf") && !replaced(".tf", ".tofu"))
                    || (name.ends_with(".tf.json") && !replaced(".tf.json", ".tofu.json"))
            }
        })
        .cloned()
        .collect()
}
