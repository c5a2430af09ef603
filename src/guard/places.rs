//! Where an Application leads: which repository an address means, and where in it its paths and value files lie.

use crate::applications::{Application, Source};
use crate::names::{AppPath, RepoUrl, Target};

/// Whether an address leads to the target's repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Leads {
    /// To another one.
    Elsewhere,
    /// Perhaps: it is not understood, or leads to a repository of the same name elsewhere, whose states would be filed at the
    /// same place.
    Perhaps,
    /// To this one.
    There,
}

/// Judges an address as it was written. `addresses` are those by which the target's repository is known.
pub(super) fn leads(text: &str, target: &Target, addresses: &[RepoUrl]) -> Leads {
    let text = text.trim();
    let parsed = text
        .parse::<RepoUrl>()
        .or_else(|_| without_user(text).parse::<RepoUrl>());
    let Ok(url) = parsed else {
        return if mentions(text, target) {
            Leads::Perhaps
        } else {
            Leads::Elsewhere
        };
    };
    if addresses.iter().any(|known| known.same_repository(&url)) {
        return Leads::There;
    }
    let name = target.repo.as_str().to_lowercase();
    if url.full_name().to_lowercase().rsplit('/').next() == Some(&name) {
        return Leads::Perhaps;
    }
    Leads::Elsewhere
}

/// Whether a text holds the repository's name, in any case and also percent-encoded.
pub(super) fn mentions(text: &str, target: &Target) -> bool {
    let name = target.repo.as_str().to_lowercase();
    decoded(text).to_lowercase().contains(&name)
}

/// Whether a text holds the repository's name as a word of its own, in any case and also percent-encoded.
pub(super) fn names_it(text: &str, target: &Target) -> bool {
    let name = target.repo.as_str().to_lowercase();
    let text = decoded(text).to_lowercase();
    let in_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    text.match_indices(&name).any(|(at, _)| {
        !text[..at].ends_with(in_name) && !text[at + name.len()..].starts_with(in_name)
    })
}

/// A password makes an address none that we take, and leads where it leads.
fn without_user(text: &str) -> String {
    match (text.find("://"), text.rfind('@')) {
        (Some(scheme), Some(at)) if scheme + 3 <= at => {
            format!("{}{}", &text[..scheme + 3], &text[at + 1..])
        }
        _ => text.to_owned(),
    }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after
            .get(..2)
            .filter(|_| *first == b'%')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        match code {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A folder or file of the clone: `relative` seen from `base`, with `.`, `..` and doubled slashes taken out. A slash at the
/// beginning means the clone's root. `None`: it leads out of the clone.
pub(super) fn within(base: &str, relative: &str) -> Option<String> {
    let start = if relative.starts_with('/') { "" } else { base };
    let mut segments: Vec<&str> = Vec::new();
    for segment in start.split('/').chain(relative.split('/')) {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop()?;
            }
            other => segments.push(other),
        }
    }
    Some(segments.join("/"))
}

/// Whether `path` is `folder` or lies in it.
pub(super) fn is_in(path: &str, folder: &str) -> bool {
    folder.is_empty()
        || path
            .strip_prefix(folder)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a path certainly has nothing to do with the app's folder. Where the estate keeps that folder is a matter of its
/// layout, so a path that holds it anywhere is not outside, and neither is one above it. Nothing is outside of a root.
pub(super) fn is_outside(path: &str, app: Option<&AppPath>) -> bool {
    let Some(app) = app else {
        return false;
    };
    let wanted: Vec<&str> = app.as_str().split('/').collect();
    let segments: Vec<&str> = path.split('/').filter(|s| !s.is_empty()).collect();
    let holds_it = segments.windows(wanted.len()).any(|some| some == wanted);
    let ends_in_its_beginning =
        (1..wanted.len()).any(|length| segments.ends_with(&wanted[..length]));
    !segments.is_empty() && !holds_it && !ends_in_its_beginning
}

/// A file of Helm's, as a source names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ValueFile {
    /// In the target's repository, at this path.
    Here(String),
    /// In the target's repository or elsewhere: what it is called does not tell.
    Unclear(String),
    /// Certainly not in the target's repository.
    Elsewhere,
}

/// The value files, and the files of parameters, of one source of the Application.
pub(super) fn value_files<'a>(
    application: &'a Application,
    source: &'a Source,
    leads: impl Fn(&str) -> Leads,
    target: &Target,
) -> Vec<ValueFile> {
    let files = source
        .value_files
        .iter()
        .chain(source.file_parameters.values());
    let place = |file: &String| {
        let unclear = || ValueFile::Unclear(file.clone());
        let patterns = |text: &str| text.contains(['$', '*', '?', '[', '{']);
        if file.contains("://") {
            return if mentions(file, target) {
                unclear()
            } else {
                ValueFile::Elsewhere
            };
        }
        let (url, base, path) = match file.strip_prefix('$') {
            None => (&source.repo_url, source.path.as_deref(), file.as_str()),
            Some(rest) => {
                let (name, path) = rest.split_once('/').unwrap_or((rest, ""));
                let named = |source: &&Source| source.reference.as_deref() == Some(name);
                match application.sources.iter().find(named) {
                    Some(referenced) => (&referenced.repo_url, Some(""), path),
                    // A variable of Argo CD's, or a name that leads nowhere.
                    None => return unclear(),
                }
            }
        };
        if leads(url) == Leads::Elsewhere {
            return ValueFile::Elsewhere;
        }
        if patterns(path) {
            return unclear();
        }
        // Of a chart from a Helm repository the files are the chart's own.
        let Some(base) = base.or(source.chart.is_none().then_some("")) else {
            return ValueFile::Elsewhere;
        };
        within(base, path).map_or_else(unclear, ValueFile::Here)
    };
    files.map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_seen_from_its_base_and_never_leaves_the_clone() {
        for (base, relative, expected) in [
            (
                "headlamp/chart",
                "../config/prd/values.yaml",
                Some("headlamp/config/prd/values.yaml"),
            ),
            (
                "headlamp/chart",
                "values.yaml",
                Some("headlamp/chart/values.yaml"),
            ),
            ("headlamp/chart", "/config/prd", Some("config/prd")),
            ("", "./x/../headlamp//chart/", Some("headlamp/chart")),
            ("chart", "../../x", None),
            ("", ".", Some("")),
        ] {
            let expected = expected.map(str::to_owned);
            assert_eq!(within(base, relative), expected, "{base} {relative}");
        }
    }

    #[test]
    fn only_what_has_no_part_in_the_apps_folder_is_outside_of_it() {
        let outside = |path: &str, app: &str| is_outside(path, app.parse().ok().as_ref());
        for (path, app) in [
            ("grafana/chart", "headlamp"),
            ("ab/chart", "a"),
            ("ab", "a/b"),
            ("b", "a/b"),
            ("a/c/chart", "a/b"),
            ("a/chart", "a/b"),
            ("a/bc", "a/b"),
        ] {
            assert!(outside(path, app), "{path} {app}");
        }
        for (path, app) in [
            ("headlamp", "headlamp"),
            ("headlamp/chart", "headlamp"),
            ("infra/headlamp/chart", "headlamp"),
            ("a/b/chart", "a"),
            ("a", "a/b"),
            ("apps/a", "a/b"),
            ("", "a"),
            ("", ""),
            ("chart", ""),
        ] {
            assert!(!outside(path, app), "{path} {app}");
        }
    }

    #[test]
    fn an_address_is_compared_in_every_form_and_in_doubt_it_leads_here() {
        let target: Target = "PlatformDeploy/headlamp/dev".parse().unwrap();
        let known = ["https://github.com/example/PlatformDeploy.git"
            .parse()
            .unwrap()];
        for (text, expected) in [
            ("https://github.com/example/PlatformDeploy", Leads::There),
            (
                "HTTPS://GitHub.com/EXAMPLE/platformdeploy.GIT/",
                Leads::There,
            ),
            ("git@github.com:example/PlatformDeploy.git", Leads::There),
            (
                "ssh://org-123@github.com/example/PlatformDeploy",
                Leads::There,
            ),
            (
                "https://user:secret@github.com/example/PlatformDeploy.git",
                Leads::There,
            ),
            (
                "https://mirror.example.org/example/PlatformDeploy.git",
                Leads::Perhaps,
            ),
            ("https://github.com/other/platformdeploy", Leads::Perhaps),
            ("github.com/example/PlatformDeploy", Leads::Perhaps),
            (
                "https://github.com/example/../example/PlatformDeploy",
                Leads::Perhaps,
            ),
            (
                "https://github.com/example/../x/Platform%44eploy",
                Leads::Perhaps,
            ),
            (
                "https://github.com/example/PlatformDeployment",
                Leads::Elsewhere,
            ),
            (
                "https://github.com/example/FieldnotesDeploy.git",
                Leads::Elsewhere,
            ),
            ("https://charts.example.org", Leads::Elsewhere),
            ("", Leads::Elsewhere),
        ] {
            assert_eq!(leads(text, &target, &known), expected, "{text}");
        }
    }
}
