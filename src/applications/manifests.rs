//! Files of Applications.

use serde::Deserialize;
use serde_json::Value;

use super::ApplicationError;

/// Why a file of manifests cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ManifestsError {
    /// It is neither YAML nor JSON.
    #[error("the Applications in {file} could not be read")]
    Syntax {
        /// The file.
        file: String,
        /// What is wrong.
        #[source]
        source: serde_yaml::Error,
    },
    /// Something in it is no Application.
    #[error(
        "{file} holds {kind:?} beside Applications; it takes Applications, and lists of them, alone"
    )]
    Kind {
        /// The file.
        file: String,
        /// The kind that stands there.
        kind: String,
    },
    /// One of them could not be read.
    #[error(transparent)]
    Object(#[from] ApplicationError),
}

/// Reads the Applications of a file, each by `read`: YAML with any number of documents, or JSON, each an Application or a
/// list of them. `file` is its name, for errors.
pub fn read_manifests<T>(
    text: &str,
    file: &str,
    read: impl Fn(&str) -> Result<T, ApplicationError>,
) -> Result<Vec<T>, ManifestsError> {
    let mut applications = Vec::new();
    for document in serde_yaml::Deserializer::from_str(text) {
        let object = Value::deserialize(document).map_err(|source| ManifestsError::Syntax {
            file: file.to_owned(),
            source,
        })?;
        if object.is_null() {
            continue;
        }
        let objects = match object.get("items") {
            Some(Value::Array(items)) => items.clone(),
            _ => vec![object],
        };
        for object in objects {
            match object.get("kind").and_then(Value::as_str) {
                Some("Application") => applications.push(read(&object.to_string())?),
                kind => {
                    return Err(ManifestsError::Kind {
                        file: file.to_owned(),
                        kind: kind.unwrap_or("something without a kind").to_owned(),
                    });
                }
            }
        }
    }
    Ok(applications)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::applications::Application;

    #[test]
    fn manifests_are_single_objects_and_lists_in_yaml_or_json() {
        let one =
            "kind: Application\nmetadata: {name: a, namespace: n}\nspec: {source: {repoURL: x}}\n";
        let list = r#"{"kind": "List", "items": [{"kind": "Application", "metadata": {"name": "b", "namespace": "n"}, "spec": {}}]}"#;
        let both = format!("---\n{one}---\n# nothing\n---\n{list}\n");
        for (text, expected) in [(one, "n/a"), (list, "n/b"), (both.as_str(), "n/a n/b")] {
            let names: Vec<String> = read_manifests(text, "x.yaml", Application::read)
                .unwrap()
                .iter()
                .map(Application::full_name)
                .collect();
            assert_eq!(names.join(" "), expected);
        }
    }

    #[test]
    fn a_file_with_anything_else_than_applications_is_refused() {
        for (text, words) in [
            (
                "kind: AppProject\nmetadata: {name: a}\n",
                "\"AppProject\" beside Applications",
            ),
            ("kind: List\nitems: [{}]\n", "something without a kind"),
            ("kind: List\nitems: {}\n", "\"List\" beside"),
            ("a: [", "could not be read"),
            ("- 1", "without a kind"),
        ] {
            let error = read_manifests(text, "x.yaml", Application::read)
                .unwrap_err()
                .to_string();
            assert!(
                error.contains(words) && error.contains("x.yaml"),
                "{text}: {error}"
            );
        }
    }
}
