//! The `layout:` templates: where an estate keeps its Terraform, its configuration and its states, and how it names
//! Applications and namespaces.

mod glob;
mod template;

use serde::{Deserialize, Deserializer, Serialize};

use crate::names::{
    AppName, AppPath, NameError, Namespace, RepoName, StageName, StateKey, Target, from_text,
};
use glob::Glob;
use template::{Template, Values};

/// The layout of an estate. Every template was checked when it was read, so filling in one of the paths cannot fail
/// and cannot leave the clone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Layout {
    #[serde(deserialize_with = "terraform_template")]
    terraform: Template,
    /// Not for presync, which may be of an older version and knows its own keys alone.
    #[serde(deserialize_with = "chart_template", skip_serializing)]
    chart: Template,
    #[serde(deserialize_with = "config_template")]
    config: Template,
    #[serde(deserialize_with = "tfvars_glob")]
    tfvars: Glob,
    #[serde(deserialize_with = "state_key_template")]
    state_key: Template,
    #[serde(deserialize_with = "application_template")]
    application: Template,
    #[serde(deserialize_with = "namespace_template")]
    namespace: Template,
    #[serde(deserialize_with = "distinct_parameters")]
    hook_parameters: HookParameters,
}

/// The names of the Helm parameters by which an Application tells its PreSync hook for whom it runs.
///
/// They differ from one another: with two of one name, Helm would keep the last value for both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HookParameters {
    /// Holds the deploy repository's URL.
    #[serde(deserialize_with = "parameter_name")]
    pub repo: String,
    /// Holds the commit.
    #[serde(deserialize_with = "parameter_name")]
    pub revision: String,
    /// Holds the stage.
    #[serde(deserialize_with = "parameter_name")]
    pub stage: String,
    /// Holds the namespace.
    #[serde(deserialize_with = "parameter_name")]
    pub namespace: String,
    /// Holds the app's directory; absent for an app at the root of its repository.
    #[serde(deserialize_with = "parameter_name")]
    pub path: String,
}

/// Why a layout cannot be read, or gives no valid name for a stage.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// A filled-in template is not the name that it stands for.
    #[error(
        "the template {template:?} of layout.{key} gives no valid name here; change the template or the names"
    )]
    Name {
        /// The key below `layout:`.
        key: &'static str,
        /// The template as written.
        template: String,
        /// What is wrong with the name.
        #[source]
        source: NameError,
    },
    /// The JSON handed to presync is no layout.
    #[error("the layout handed over as JSON cannot be read")]
    Json(#[source] serde_json::Error),
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            terraform: template::TERRAFORM.default_template(),
            chart: template::CHART.default_template(),
            config: template::CONFIG.default_template(),
            tfvars: Glob::default(),
            state_key: template::STATE_KEY.default_template(),
            application: template::APPLICATION.default_template(),
            namespace: template::NAMESPACE.default_template(),
            hook_parameters: HookParameters::default(),
        }
    }
}

impl Default for HookParameters {
    fn default() -> Self {
        Self {
            repo: "hook.repo".to_owned(),
            revision: "hook.revision".to_owned(),
            stage: "hook.stage".to_owned(),
            namespace: "hook.namespace".to_owned(),
            path: "hook.path".to_owned(),
        }
    }
}

impl Layout {
    /// The folder of an app's Terraform root, relative to the clone, with no slash at either end; empty for the clone
    /// itself.
    pub fn terraform_dir(&self, repo: &RepoName, path: Option<&AppPath>) -> String {
        self.terraform.fill(&Values {
            repo: repo.as_str(),
            path: path.map_or("", AppPath::as_str),
            ..Values::default()
        })
    }

    /// The folder of an app's chart, relative to the clone, with no slash at either end; empty for the clone itself.
    pub fn chart_dir(&self, repo: &RepoName, path: Option<&AppPath>) -> String {
        self.chart.fill(&Values {
            repo: repo.as_str(),
            path: path.map_or("", AppPath::as_str),
            ..Values::default()
        })
    }

    /// The folder of a stage's configuration, relative to the clone, with no slash at either end.
    pub fn config_dir(&self, repo: &RepoName, path: Option<&AppPath>, stage: &StageName) -> String {
        self.config.fill(&Values {
            repo: repo.as_str(),
            path: path.map_or("", AppPath::as_str),
            stage: stage.as_str(),
            ..Values::default()
        })
    }

    /// The stage in whose configuration folder a path lies, or which it is; `None` for a path elsewhere. Both are relative to the
    /// clone.
    pub fn stage_of_config(
        &self,
        repo: &RepoName,
        path: Option<&AppPath>,
        file: &str,
    ) -> Option<StageName> {
        let stages = self.config.stages_in(file);
        stages
            .filter_map(|stage| stage.parse::<StageName>().ok())
            .find(|stage| {
                let folder = self.config_dir(repo, path, stage);
                let rest = file.strip_prefix(&folder);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
    }

    /// Whether a file of the configuration folder, given by its name alone, is handed to Terraform as variables. As in
    /// a shell, a name that begins with `.` is matched only by a pattern that does.
    pub fn is_tfvars(&self, file_name: &str) -> bool {
        self.tfvars.matches(file_name)
    }

    /// The pattern by which [`Layout::is_tfvars`] judges.
    pub fn tfvars(&self) -> &str {
        self.tfvars.pattern()
    }

    /// The path of a stage's state in the state repository.
    ///
    /// # Errors
    /// When the prefix or the template gives no valid key, such as one with more than 238 characters.
    pub fn state_key(
        &self,
        prefix: &str,
        repo: &RepoName,
        path: Option<&AppPath>,
        stage: &StageName,
    ) -> Result<StateKey, LayoutError> {
        let key = self.state_key.fill(&Values {
            prefix,
            repo: repo.as_str(),
            path: path.map_or("", AppPath::as_str),
            stage: stage.as_str(),
            ..Values::default()
        });
        key.parse().map_err(|source| LayoutError::Name {
            key: template::STATE_KEY.name,
            template: self.state_key.to_string(),
            source,
        })
    }

    /// The stage whose state lies at this path of the state repository; `None` for the path of no state.
    pub fn target_of_state(&self, prefix: &str, key: &StateKey) -> Option<Target> {
        let [repo, path, stage] = self.state_key.taken_apart(prefix, key.as_str())?;
        target(repo.parse().ok()?, &path, &stage)
    }

    /// The stage whose configuration folder this is, relative to the clone of this repository; `None` for another folder.
    pub fn target_of_config(&self, repo: &RepoName, folder: &str) -> Option<Target> {
        let [named, path, stage] = self.config.taken_apart("", folder)?;
        let own = named.is_empty() || named == repo.as_str();
        own.then(|| target(repo.clone(), &path, &stage)).flatten()
    }

    /// The name of a registered stage's Application.
    pub fn application(&self, app: &AppName, stage: &StageName) -> String {
        self.application.fill(&Values {
            app: app.as_str(),
            stage: stage.as_str(),
            ..Values::default()
        })
    }

    /// The namespace into which a registered stage is deployed.
    ///
    /// # Errors
    /// When the filled-in template is no namespace, such as one with more than 63 characters.
    pub fn namespace(&self, app: &AppName, stage: &StageName) -> Result<Namespace, LayoutError> {
        let name = self.namespace.fill(&Values {
            app: app.as_str(),
            stage: stage.as_str(),
            ..Values::default()
        });
        name.parse().map_err(|source| LayoutError::Name {
            key: template::NAMESPACE.name,
            template: self.namespace.to_string(),
            source,
        })
    }

    /// The names of the hook's Helm parameters.
    pub fn hook_parameters(&self) -> &HookParameters {
        &self.hook_parameters
    }

    /// The layout as one line of JSON, in the keys of the settings file, for the program inside a launch.
    pub fn to_json(&self) -> String {
        serde_json::json!(self).to_string()
    }

    /// Reads what [`Layout::to_json`] wrote; keys left out have their defaults.
    ///
    /// # Errors
    /// When the text is no JSON, holds an unknown key, or a template that the settings would refuse.
    pub fn from_json(text: &str) -> Result<Self, LayoutError> {
        serde_json::from_str(text).map_err(LayoutError::Json)
    }
}

fn terraform_template<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Template, D::Error> {
    template::TERRAFORM.deserialize(deserializer)
}

/// The stage of an app, whose path may be empty; `None` where they are no names.
fn target(repo: RepoName, path: &str, stage: &str) -> Option<Target> {
    let path = match path {
        "" => None,
        path => Some(path.parse().ok()?),
    };
    let stage = stage.parse().ok()?;
    Some(Target { repo, path, stage })
}

fn chart_template<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Template, D::Error> {
    template::CHART.deserialize(deserializer)
}

fn config_template<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Template, D::Error> {
    template::CONFIG.deserialize(deserializer)
}

fn state_key_template<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Template, D::Error> {
    template::STATE_KEY.deserialize(deserializer)
}

fn application_template<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Template, D::Error> {
    template::APPLICATION.deserialize(deserializer)
}

fn namespace_template<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Template, D::Error> {
    template::NAMESPACE.deserialize(deserializer)
}

fn tfvars_glob<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Glob, D::Error> {
    from_text(deserializer, Glob::parse)
}

/// A Helm parameter's name: what stands before the `=` of `--set`, so neither blank nor control characters nor `=`,
/// `,` (<https://helm.sh/docs/intro/using_helm/#the-format-and-limitations-of---set>).
fn parameter_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    from_text(deserializer, |text| {
        let fits = !text.is_empty()
            && text
                .chars()
                .all(|c| !c.is_whitespace() && !c.is_control() && !matches!(c, '=' | ','));
        if fits {
            Ok(text.to_owned())
        } else {
            Err(format!(
                "the Helm parameter name {text:?} must not be empty and must hold no blank, \"=\" or \",\""
            ))
        }
    })
}

fn distinct_parameters<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<HookParameters, D::Error> {
    let names = HookParameters::deserialize(deserializer)?;
    let all = [
        &names.repo,
        &names.revision,
        &names.stage,
        &names.namespace,
        &names.path,
    ];
    match (1..all.len()).find(|at| all[..*at].contains(&all[*at])) {
        Some(at) => Err(serde::de::Error::custom(format!(
            "the Helm parameter name {:?} is given twice; each of repo, revision, stage, namespace and path needs its own",
            all[at]
        ))),
        None => Ok(names),
    }
}

#[cfg(test)]
mod tests;
