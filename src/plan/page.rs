//! The report of a plan for people: what matters first, before and after of each change.

use crate::page::{self, Body, Fact, Item, Page, Part, Tone, Verdict};
use crate::report::Outcome;
use crate::terraform::changes::{Action, Changes};
use crate::transport::record::PlanRecord;

use super::PlanReport;

impl PlanReport {
    /// The page.
    pub fn page(&self) -> Page {
        let record = self.progress.record.as_ref();
        let facts = self.facts(record);
        let parts = record.map(parts).unwrap_or_default();
        Page {
            kind: "Plan".to_owned(),
            target: self.target.to_string(),
            verdict: self.verdict(record),
            warnings: self.progress.warnings.clone(),
            facts,
            parts,
            made: page::made("stagewright-plan", jiff::Timestamp::now()),
        }
    }

    fn verdict(&self, record: Option<&PlanRecord>) -> Verdict {
        let changes = record.map(|record| &record.changes);
        let changes = changes.filter(|_| self.outcome == Outcome::Done);
        let (tone, word) = match changes {
            None => (Tone::Grave, self.outcome.word()),
            Some(changes) if changes.is_empty() => (Tone::Calm, "No changes"),
            Some(changes) if changes.refused() > 0 => {
                (Tone::Grave, "Changes that an apply refuses")
            }
            Some(changes) if destroys(changes) => (Tone::Grave, "Changes that destroy"),
            Some(_) => (Tone::Notice, "Changes"),
        };
        Verdict {
            tone,
            word: word.to_owned(),
            error: self.error(),
            last_line: self.last_line(),
        }
    }

    fn facts(&self, record: Option<&PlanRecord>) -> Vec<Fact> {
        let progress = &self.progress;
        let mut facts = vec![Fact::new("target", &self.target)];
        let mut fact = |name: &str, line: Option<String>| {
            facts.extend(line.map(|line| Fact::new(name, &line)));
        };
        fact(
            "commit",
            progress.revision.as_ref().map(ToString::to_string),
        );
        fact("branch", progress.branch.as_ref().map(ToString::to_string));
        fact(
            "namespace",
            progress.namespace.as_ref().map(ToString::to_string),
        );
        if let Some(place) = &progress.state {
            let mut lines = vec![place.key.to_string()];
            lines.push(format!("in {} on {}", place.repository, place.branch));
            lines.extend(record.map(|record| match &record.state.position {
                Some(position) => {
                    format!("lineage {}, serial {}", position.lineage, position.serial)
                }
                None => "none there: everything is planned anew".to_owned(),
            }));
            facts.push(Fact {
                name: "state".to_owned(),
                lines,
            });
        }
        let mut fact = |name: &str, line: Option<String>| {
            facts.extend(line.map(|line| Fact::new(name, &line)));
        };
        fact(
            "planned with",
            record.map(|record| record.terraform.clone()),
        );
        fact("asked by", self.build.clone());
        let log = self.log.as_ref().map(|log| log.display().to_string());
        fact("log", log);
        facts
    }
}

fn destroys(changes: &Changes) -> bool {
    changes
        .resources
        .iter()
        .any(|change| change.action.destroys())
}

fn parts(record: &PlanRecord) -> Vec<Part> {
    let PlanRecord {
        changes, values, ..
    } = record;
    let mut parts = Vec::new();
    if !changes.is_empty() {
        parts.push(counts(changes));
    }
    let by_address = values.by_address();
    let items = changes.resources.iter().map(|change| {
        let place = (change.address.as_str(), change.deposed.as_deref());
        Item::of(change, by_address.get(&place).copied())
    });
    let mut items: Vec<Item> = items.collect();
    items.sort_by_key(|item| page::weight_of(item.action));
    if !items.is_empty() {
        parts.push(Part {
            heading: format!("Changes to resources ({})", items.len()),
            tone: Tone::Calm,
            body: Body::Changes {
                changes: items,
                left_out: values.left_out,
            },
        });
    }
    if !changes.gone.is_empty() {
        parts.push(Part {
            heading: format!(
                "Already gone, an apply drops them from the state ({})",
                changes.gone.len()
            ),
            tone: Tone::Notice,
            body: Body::Lines(changes.gone.iter().map(ToString::to_string).collect()),
        });
    }
    if !changes.outputs.is_empty() {
        let outputs = changes.outputs.iter();
        parts.push(Part {
            heading: format!("Changes to outputs ({})", changes.outputs.len()),
            tone: Tone::Calm,
            body: Body::Changes {
                changes: outputs
                    .map(|output| Item::of_output(output, &values.outputs))
                    .collect(),
                left_out: 0,
            },
        });
    }
    parts
}

fn counts(changes: &Changes) -> Part {
    let mut counted: Vec<(Action, usize)> = changes.counts().into_iter().collect();
    counted.sort_by_key(|(action, _)| page::weight_of(*action));
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |name: &str, count: usize| {
        if count > 0 {
            rows.push(vec![name.to_owned(), count.to_string()]);
        }
    };
    for (action, count) in counted {
        if action != Action::Nothing {
            row(action.word(), count);
        }
    }
    let resources = changes.resources.iter();
    row(
        "move",
        resources.clone().filter(|c| c.moved_from.is_some()).count(),
    );
    row("import", resources.filter(|c| c.import).count());
    row("already gone", changes.gone.len());
    row("output", changes.outputs.len());
    row("refused by an apply, being protected", changes.refused());
    Part {
        heading: "How much changes".to_owned(),
        tone: Tone::Calm,
        body: Body::Table {
            head: ["Change", "How many"].map(str::to_owned).into(),
            rows,
        },
    }
}
