//! A preview in the order in which a person must read it: what it is about, what says that it is not in use, what is lost
//! for good, what else happens, what is removed where, and what a confirmation binds.

use std::collections::HashSet;

use super::objections::Namespaced;
use super::{Bound, Preview, Told};
use crate::terraform::changes::{Action, Change};

/// What the job knows beside presync's preview.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// Where the cluster's objects were looked for: `the context prd`, `this machine`.
    pub cluster: String,
    /// What proves that the stage is not in use, with counts.
    pub not_in_use: Vec<String>,
    /// The namespaces of the forgotten objects.
    pub namespaces: Vec<(String, Namespaced)>,
    /// Where the stage's config folder is removed: `PlatformDeploy's main`.
    pub config_from: String,
    /// What else is hit.
    pub collateral: Vec<String>,
}

/// The whole text in its parts, for any form of showing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// What it is about.
    pub title: String,
    /// One after the other.
    pub sections: Vec<Section>,
}

/// What a part is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// The target, its commit and its state: names with what they stand for.
    What,
    /// The proof that it is not in use.
    NotInUse,
    /// What is lost for good.
    Data,
    /// What else is destroyed.
    Destroyed,
    /// Any other part.
    Beside,
    /// The counts, and what a confirmation binds.
    Totals,
}

/// A part under its own heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// What it is about.
    pub about: About,
    /// The heading.
    pub heading: String,
    /// Rows of cells; the columns of a section belong together.
    pub rows: Vec<Vec<String>>,
}

/// Puts it in order. What has nothing to say is left out, but for the parts whose emptiness says something.
pub fn reading(preview: &Preview, context: &Context) -> Reading {
    let Preview { bound, told, .. } = preview;
    let mut sections = vec![
        section(About::What, "What", what(preview, context)),
        section(
            About::NotInUse,
            "Not in use",
            one_column(&context.not_in_use),
        ),
        section(
            About::Data,
            &format!("Data that is lost for good ({})", told.data.len()),
            data(told),
        ),
        section(
            About::Destroyed,
            "Destroyed as well",
            destroyed(bound, told),
        ),
        section(
            About::Beside,
            "What else is hit",
            one_column(&context.collateral),
        ),
        section(
            About::Beside,
            "Lifted and unheard",
            one_column(&told.lifted),
        ),
        section(
            About::Beside,
            "Does not run",
            one_column(&told.provisioners),
        ),
        section(
            About::Beside,
            "Forgotten, not destroyed",
            forgotten(bound, context),
        ),
        section(
            About::Beside,
            "Already gone, says the provider",
            one_column(&bound.gone),
        ),
        section(About::Beside, "Outputs that go", outputs(bound)),
        section(
            About::Beside,
            "Removed by commits",
            removed(bound, told, context),
        ),
        section(About::Beside, "To be noticed", one_column(&told.warnings)),
        section(About::Totals, "In all", totals(bound, told)),
    ];
    sections.retain(|section| !section.rows.is_empty() || section.about == About::Data);
    Reading {
        title: format!("What a destroy of {} takes", bound.target()),
        sections,
    }
}

fn section(about: About, heading: &str, rows: Vec<Vec<String>>) -> Section {
    Section {
        about,
        heading: heading.to_owned(),
        rows,
    }
}

fn one_column<T: std::fmt::Display>(lines: &[T]) -> Vec<Vec<String>> {
    lines.iter().map(|line| vec![line.to_string()]).collect()
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).into()
}

fn what(preview: &Preview, context: &Context) -> Vec<Vec<String>> {
    let bound = &preview.bound;
    let mut rows = vec![row(["target", &bound.target()])];
    if let Some(namespace) = &bound.namespace {
        rows.push(row(["namespace", namespace.as_str()]));
    }
    rows.push(row(["at", preview.revision.as_str()]));
    rows.push(row(["cluster", &context.cluster]));
    let key = bound.state.key.as_str();
    match &bound.state.position {
        None => rows.push(row(["state", &format!("none at {key}")])),
        Some(position) => {
            rows.push(row(["state", key]));
            let place = format!("lineage {}, serial {}", position.lineage, position.serial);
            rows.push(row(["", &place]));
        }
    }
    if let Some(written) = &preview.told.written {
        let by = format!("last written at {} by {}", written.at, written.by);
        rows.push(row(["", &by]));
    }
    if let Some(proof) = &preview.told.state_folder.proof {
        rows.push(row(["", &format!("destroyed before, by commit {proof}")]));
    }
    rows
}

fn data(told: &Told) -> Vec<Vec<String>> {
    let data = told.data.iter().map(|data| {
        let identity = data
            .identity
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let identity: Vec<String> = identity.collect();
        vec![data.what.clone(), data.address.clone(), identity.join(", ")]
    });
    let data: Vec<Vec<String>> = data.collect();
    if data.is_empty() {
        return vec![row(["nothing that is known to hold data"])];
    }
    data
}

fn destroyed(bound: &Bound, told: &Told) -> Vec<Vec<String>> {
    let others = destroyed_as_well(bound, told).into_iter();
    others.map(|change| vec![change.to_string()]).collect()
}

/// The changes of the plan that are not told as lost data, nor as forgotten.
pub fn destroyed_as_well<'a>(bound: &'a Bound, told: &Told) -> Vec<&'a Change> {
    let data = told.data.iter().map(|data| data.address.as_str());
    let data: HashSet<&str> = data.collect();
    let others = bound.changes.iter().filter(|change| {
        let is_told = change.deposed.is_none() && data.contains(change.address.as_str());
        !is_told && !matches!(change.action, Action::Nothing | Action::Forget)
    });
    others.collect()
}

fn forgotten(bound: &Bound, context: &Context) -> Vec<Vec<String>> {
    let mut rows = one_column(&bound.forgotten);
    let by_plan = bound.changes.iter();
    let by_plan = by_plan.filter(|change| change.action == Action::Forget);
    rows.extend(by_plan.map(|change| vec![format!("{change} (it stays as it is)")]));
    for (name, seen) in &context.namespaces {
        let seen = match seen {
            Namespaced::NotFound => "is gone (NotFound)".to_owned(),
            Namespaced::Lives => "still lives: what is in it stays behind".to_owned(),
            Namespaced::Ending => "is being deleted".to_owned(),
            Namespaced::Unknown(why) => format!("could not be looked at ({why})"),
        };
        rows.push(vec![format!("the namespace {name} {seen}")]);
    }
    rows
}

fn outputs(bound: &Bound) -> Vec<Vec<String>> {
    let outputs: Vec<&str> = bound.outputs.iter().map(|o| o.name.as_str()).collect();
    if outputs.is_empty() {
        return Vec::new();
    }
    vec![vec![outputs.join(", ")]]
}

fn removed(bound: &Bound, told: &Told, context: &Context) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    if bound.state.position.is_some() {
        rows.push(row([bound.state.key.as_str(), "from the state repository"]));
    }
    let from = format!("from {}", context.config_from);
    for file in &told.config.files {
        rows.push(vec![format!("{}/{file}", told.config.path), from.clone()]);
    }
    rows
}

/// How many objects there are, and what becomes of them.
pub(super) fn counts(bound: &Bound, told: &Told) -> String {
    format!(
        "{} object(s) in the state: {} destroyed, {} forgotten, {} already gone; {} hold(s) data",
        told.objects,
        bound.destroyed(),
        bound.dropped(),
        bound.gone.len(),
        told.data.len()
    )
}

fn totals(bound: &Bound, told: &Told) -> Vec<Vec<String>> {
    let mut programs = vec![format!("stagewright {}", bound.versions.stagewright)];
    programs.push(bound.versions.terraform.clone());
    let providers = bound.versions.providers.iter();
    programs.extend(providers.map(|(address, version)| format!("{address} {version}")));
    vec![
        vec![counts(bound, told)],
        vec![format!("with {}", programs.join(", "))],
        vec![format!("digest {}", bound.digest())],
    ]
}

/// A name from outside can hold what moves a cursor or ends a line.
pub(super) fn plain(cell: &str) -> String {
    let shown = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    cell.chars().map(shown).collect()
}

/// As plain text, the columns of each section under each other.
impl std::fmt::Display for Reading {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.title)?;
        for section in &self.sections {
            writeln!(f, "\n{}", section.heading)?;
            let columns = section.rows.iter().map(Vec::len).max().unwrap_or(0);
            let width = |column: usize| {
                let cells = section.rows.iter().filter_map(|row| row.get(column));
                cells
                    .map(|cell| plain(cell).chars().count())
                    .max()
                    .unwrap_or(0)
            };
            let widths: Vec<usize> = (0..columns).map(width).collect();
            for row in &section.rows {
                let cells = row.iter().zip(&widths);
                let cells = cells.map(|(cell, width)| format!("{:<width$}", plain(cell)));
                let line = cells.collect::<Vec<_>>().join("  ");
                writeln!(f, "  {}", line.trim_end())?;
            }
        }
        Ok(())
    }
}
