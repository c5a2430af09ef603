//! One entry below `apps`, with every fault that it has.

use std::str::FromStr;

use super::{App, Claim, Fault, Stage, Upstream};
use crate::names::{AppName, AppPath, RepoUrl, StageName};
use crate::yaml::{Node, Place, Value};

const APP_KEYS: [&str; 5] = ["repo", "path", "upstream", "syncOptions", "stages"];
const UPSTREAM_KEYS: [&str; 2] = ["repo", "chart"];
const STAGE_KEYS: [&str; 3] = ["autoSync", "targetRevision", "version"];
const STAGES_SHAPE: &str =
    "\"stages\" takes a mapping with one key for each stage, such as `stages: {prd: {}}`";

/// Whether a fault hides a repository, a path or a stage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hides {
    Something,
    Nothing,
}

pub(super) fn read(key: &Node, value: &Node, file: &str) -> (Option<App>, Claim, Vec<Fault>) {
    let mut reader = Reader {
        app: key.raw_text(),
        stage: None,
        file,
        claim: Claim {
            app: key.raw_text().to_owned(),
            repo: None,
            path: None,
            stages: Vec::new(),
        },
        faults: Vec::new(),
    };
    let app = reader.app(key, value);
    (app, reader.claim, reader.faults)
}

/// Collects the faults of one app's entry. What it gives as `None` has its fault among them.
struct Reader<'a> {
    app: &'a str,
    stage: Option<&'a str>,
    file: &'a str,
    claim: Claim,
    faults: Vec<Fault>,
}

impl<'a> Reader<'a> {
    fn fault(&mut self, place: Place, sentence: &str) {
        self.add(place, sentence, Hides::Nothing);
    }

    /// A fault that hides a repository, a path or a stage.
    fn hidden(&mut self, place: Place, sentence: &str) {
        self.add(place, sentence, Hides::Something);
    }

    fn add(&mut self, place: Place, sentence: &str, hides: Hides) {
        let entry = match self.stage {
            Some(stage) => format!("apps.{}.stages.{stage}", self.app),
            None => format!("apps.{}", self.app),
        };
        self.faults.push(Fault {
            app: self.app.to_owned(),
            stage: self.stage.map(str::to_owned),
            file: self.file.to_owned(),
            place,
            message: format!("{entry}: {sentence}"),
            hides: hides == Hides::Something,
        });
    }

    fn app(&mut self, key: &Node, value: &'a Node) -> Option<App> {
        let name: Option<AppName> = self.name(key, Hides::Nothing);
        if !matches!(value.value(), Value::Mapping(_)) {
            self.hidden(
                if value.is_null() {
                    key.place()
                } else {
                    value.place()
                },
                &format!(
                    "{} stands where the app's mapping with \"repo\" and \"stages\" is wanted",
                    value.kind()
                ),
            );
            return None;
        }
        // Without a path, an unknown key may be one that is misspelt.
        let hides = match value.get("path") {
            Some(_) => Hides::Nothing,
            None => Hides::Something,
        };
        self.known_keys(value, &APP_KEYS, hides);
        let repo = self.repo(key, value);
        let path = value
            .get("path")
            .and_then(|node| self.parsed::<AppPath>("path", node));
        self.claim.repo.clone_from(&repo);
        self.claim.path.clone_from(&path);
        let upstream = value.get("upstream").and_then(|node| self.upstream(node));
        let sync_options = self.sync_options(value);
        let stages = self.stages(key, value, value.get("upstream").is_some());
        if self.faults.iter().any(|fault| fault.stage.is_none()) {
            return None;
        }
        Some(App {
            name: name?,
            repo: repo?,
            path,
            upstream,
            sync_options,
            stages,
            place: key.place(),
        })
    }

    /// A key that is a name.
    fn name<T: FromStr<Err = crate::names::NameError>>(
        &mut self,
        key: &Node,
        hides: Hides,
    ) -> Option<T> {
        let name = key
            .text()
            .map_err(|error| error.to_string())
            .and_then(|text| text.parse::<T>().map_err(|error| error.to_string()));
        name.map_err(|sentence| self.add(key.place(), &sentence, hides))
            .ok()
    }

    fn known_keys(&mut self, mapping: &Node, known: &[&str], hides: Hides) {
        let Value::Mapping(entries) = mapping.value() else {
            return;
        };
        for (key, _) in entries {
            if !known.contains(&key.raw_text()) {
                let sentence = format!(
                    "unknown key {:?}; known are {}",
                    key.raw_text(),
                    known.join(", ")
                );
                self.add(key.place(), &sentence, hides);
            }
        }
    }

    /// The text of a key that must not be empty.
    fn text(&mut self, key: &str, node: &Node) -> Option<String> {
        match node.text() {
            Ok(text) if text.trim().is_empty() || text.chars().any(char::is_control) => {
                self.fault(
                    node.place(),
                    &format!("{key:?} must be one line of text and not empty; give a value, or remove the key"),
                );
                None
            }
            Ok(text) => Some(text.to_owned()),
            Err(error) => {
                self.fault(node.place(), &format!("{key:?}: {error}"));
                None
            }
        }
    }

    fn parsed<T: FromStr<Err = crate::names::NameError>>(
        &mut self,
        key: &str,
        node: &Node,
    ) -> Option<T> {
        let value = node
            .text()
            .map_err(|error| error.to_string())
            .and_then(|text| text.parse::<T>().map_err(|error| error.to_string()));
        value
            .map_err(|sentence| self.hidden(node.place(), &format!("{key:?}: {sentence}")))
            .ok()
    }

    fn repo(&mut self, key: &Node, app: &Node) -> Option<RepoUrl> {
        let Some(node) = app.get("repo") else {
            self.hidden(
                key.place(),
                "the key \"repo\" is missing; it takes the URL of the app's deploy repository",
            );
            return None;
        };
        let url: RepoUrl = self.parsed("repo", node)?;
        if !url.has_path() {
            self.hidden(
                node.place(),
                &format!(
                    "\"repo\": {:?} names a host and no repository on it",
                    url.as_str()
                ),
            );
            return None;
        }
        Some(url)
    }

    fn upstream(&mut self, node: &Node) -> Option<Upstream> {
        if !matches!(node.value(), Value::Mapping(_)) {
            self.fault(
                node.place(),
                &format!(
                    "\"upstream\" holds {}; it takes a mapping with \"repo\" and \"chart\"",
                    node.kind()
                ),
            );
            return None;
        }
        self.known_keys(node, &UPSTREAM_KEYS, Hides::Nothing);
        let [repo, chart] = UPSTREAM_KEYS.map(|key| match node.get(key) {
            Some(value) => self.text(key, value),
            None => {
                self.fault(
                    node.place(),
                    &format!("\"upstream\" lacks {key:?}; it takes \"repo\" and \"chart\""),
                );
                None
            }
        });
        Some(Upstream {
            repo: repo?,
            chart: chart?,
        })
    }

    fn sync_options(&mut self, app: &Node) -> Vec<String> {
        let Some(node) = app.get("syncOptions") else {
            return Vec::new();
        };
        let Value::Sequence(items) = node.value() else {
            self.fault(
                node.place(),
                &format!(
                    "\"syncOptions\" holds {}; it takes a list such as [ServerSideApply=true]",
                    node.kind()
                ),
            );
            return Vec::new();
        };
        items
            .iter()
            .filter_map(|item| self.sync_option(item))
            .collect()
    }

    /// All of Argo CD's are written so (<https://argo-cd.readthedocs.io/en/stable/user-guide/sync-options/>); it takes others without a
    /// word, and they do nothing.
    fn sync_option(&mut self, node: &Node) -> Option<String> {
        let option = self.text("syncOptions", node)?;
        let (name, value) = option.split_once('=').unwrap_or_default();
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic());
        if is_name && !value.is_empty() {
            return Some(option);
        }
        self.fault(
            node.place(),
            &format!("\"syncOptions\" has {option:?}; an option is written Name=value, such as ServerSideApply=true"),
        );
        None
    }

    fn stages(&mut self, key: &Node, app: &'a Node, has_upstream: bool) -> Vec<Stage> {
        let Some(node) = app.get("stages") else {
            self.hidden(
                key.place(),
                &format!("the key \"stages\" is missing; {STAGES_SHAPE}"),
            );
            return Vec::new();
        };
        match node.value() {
            Value::Mapping(entries) if entries.is_empty() => {
                self.fault(
                    node.place(),
                    "\"stages\" has no stage in it; add one, or remove the app",
                );
                Vec::new()
            }
            Value::Mapping(entries) => entries
                .iter()
                .filter_map(|(name, value)| {
                    self.stage = Some(name.raw_text());
                    let stage = self.one_stage(name, value, has_upstream);
                    self.stage = None;
                    stage
                })
                .collect(),
            _ => {
                self.hidden(
                    node.place(),
                    &format!("\"stages\" holds {}; {STAGES_SHAPE}", node.kind()),
                );
                Vec::new()
            }
        }
    }

    fn one_stage(&mut self, key: &Node, value: &Node, has_upstream: bool) -> Option<Stage> {
        let before = self.faults.len();
        let name: Option<StageName> = self.name(key, Hides::Something);
        self.claim.stages.extend(name.clone());
        if !value.is_null() && !matches!(value.value(), Value::Mapping(_)) {
            self.fault(
                value.place(),
                &format!(
                    "{} stands where the stage's mapping is wanted, which may be {{}}",
                    value.kind()
                ),
            );
            return None;
        }
        self.known_keys(value, &STAGE_KEYS, Hides::Nothing);
        let auto_sync = value
            .get("autoSync")
            .is_none_or(|node| self.truth("autoSync", node));
        let target_revision = value
            .get("targetRevision")
            .and_then(|node| self.text("targetRevision", node));
        let version = value
            .get("version")
            .and_then(|node| self.text("version", node));
        match (has_upstream, value.get("version")) {
            (true, None) => self.fault(
                key.place(),
                "the key \"version\" is missing; the chart of an app with \"upstream\" is pinned in each stage",
            ),
            (false, Some(node)) => self.fault(
                node.place(),
                "\"version\" pins the chart of an \"upstream\", and this app has none; remove it, or add \"upstream\" to the app",
            ),
            _ => {}
        }
        if self.faults.len() > before {
            return None;
        }
        Some(Stage {
            name: name?,
            auto_sync,
            target_revision,
            version,
            is_null: value.is_null(),
            place: key.place(),
        })
    }

    fn truth(&mut self, key: &str, node: &Node) -> bool {
        match node.value() {
            Value::Scalar { text, plain: true } if text == "true" => true,
            Value::Scalar { text, plain: true } if text == "false" => false,
            Value::Scalar { text, .. } if !text.is_empty() => {
                self.fault(
                    node.place(),
                    &format!("{key:?} is {text:?}; write true or false, without quotes"),
                );
                false
            }
            _ => {
                self.fault(
                    node.place(),
                    &format!("{key:?} holds {}; write true or false", node.kind()),
                );
                false
            }
        }
    }
}
