//! The report of a step for people: in the order in which a preview is to be read, with what was done of it.

use crate::page::{self, Body, Fact, Item, Page, Part, Tone, Verdict};
use crate::preview::objections::Left;
use crate::preview::reading::{About, Reading, Section, destroyed_as_well};
use crate::preview::{Bound, Data, Preview};
use crate::report::Outcome;
use crate::terraform::changes::Action;

use super::result::{DestroyReport, Reviewed};
use super::{PROGRAM, Step};

impl DestroyReport {
    /// The page.
    pub fn page(&self) -> Page {
        let mut facts = Vec::new();
        let mut parts = Vec::new();
        if let Some(reviewed) = &self.progress.reviewed {
            let Reading { sections, .. } = &reviewed.reading;
            let what = sections.iter().filter(|s| s.about == About::What);
            facts = what.flat_map(facts_of).collect();
            parts.push(counts(&reviewed.preview));
            parts.extend(self.did());
            let sections = sections.iter().filter(|s| s.about != About::What);
            parts.extend(sections.map(|section| part(section, &reviewed.preview)));
            parts.extend(lifted(reviewed));
        } else {
            facts.push(Fact::new("target", &self.wanted.target));
            parts.extend(self.did());
        }
        facts.extend(self.confirmation());
        Page {
            kind: self.kind().to_owned(),
            target: self.wanted.target.to_string(),
            verdict: self.verdict(),
            warnings: self.progress.warnings.clone(),
            facts,
            parts,
            made: page::made(PROGRAM, jiff::Timestamp::now()),
        }
    }

    fn kind(&self) -> &'static str {
        match self.step {
            Step::Check => "Check before a destroy",
            Step::Preview => "Preview of a destroy",
            Step::All if !self.progress.launched => "Preview of a destroy",
            Step::Destroy | Step::All => "Destroy",
            Step::RemoveConfig => "Removal of the config folder",
        }
    }

    fn verdict(&self) -> Verdict {
        let left = self.progress.preview.as_ref().map(|preview| preview.left);
        let (tone, word) = match (self.outcome, self.step) {
            (Outcome::Done, Step::Check) => (Tone::Calm, "Not in use"),
            (Outcome::Done, Step::RemoveConfig) => (Tone::Calm, "Removed"),
            (Outcome::Done, _) if self.progress.destroyed.is_some() => (Tone::Calm, "Destroyed"),
            (Outcome::Done, _) if left == Some(Left::Nothing) => (Tone::Calm, "Nothing is left"),
            (Outcome::Done, _) => (Tone::Notice, "Previewed: nothing was changed"),
            (outcome, _) => (Tone::Grave, outcome.word()),
        };
        Verdict {
            tone,
            word: word.to_owned(),
            error: self.error(),
            last_line: self.last_line(),
        }
    }

    /// What a confirmation of it needs.
    fn confirmation(&self) -> Vec<Fact> {
        let mut facts = Vec::new();
        if let Some(preview) = &self.progress.preview {
            facts.push(Fact::new("digest", &preview.digest));
            if self.wanted.record.is_some() && preview.objections.is_empty() {
                facts.push(Fact::new("can be confirmed until", &preview.expires));
            }
        }
        let record = self.wanted.record.as_ref();
        facts.extend(record.map(|record| Fact::new("record", &record.display())));
        let url = self.wanted.build_url.as_deref();
        let url = url.map(crate::presync::provenance::without_credentials);
        facts.extend(url.map(|url| Fact::new("build", &url)));
        let approved = self.wanted.approved_by.as_ref();
        facts.extend(approved.map(|who| Fact::new("approved by", who)));
        facts
    }

    /// What this run did.
    fn did(&self) -> Option<Part> {
        let progress = &self.progress;
        let mut lines = Vec::new();
        match &progress.destroyed {
            Some(_) if progress.was_destroyed => {
                lines.push("an earlier run destroyed it by this record".to_owned());
            }
            Some(done) => {
                lines.push(format!("{} object(s) destroyed", done.destroyed));
                lines.push(format!("{} object(s) forgotten", done.forgotten));
                lines.push(match &done.removed {
                    Some(commit) => format!("the state removed by commit {commit}"),
                    None => "no state was left to remove".to_owned(),
                });
            }
            None if progress.launched => lines.push(
                "Not everything: the log says how far it came. What follows is what was confirmed."
                    .to_owned(),
            ),
            None => {}
        }
        if progress.config_removed {
            lines.push(match &progress.config_commit {
                Some(commit) => format!("the config folder removed by commit {commit}"),
                None => "no config folder was left to remove".to_owned(),
            });
        }
        (!lines.is_empty()).then(|| Part {
            heading: "What this run did".to_owned(),
            tone: Tone::Calm,
            body: Body::Lines(lines),
        })
    }
}

/// Rows of a name and a line; one without a name goes on with the fact above it.
fn facts_of(section: &Section) -> Vec<Fact> {
    let mut facts: Vec<Fact> = Vec::new();
    for row in &section.rows {
        let (name, line) = match row.as_slice() {
            [name, line] => (name.as_str(), line.clone()),
            cells => ("", cells.join(" ")),
        };
        match facts.last_mut() {
            Some(fact) if name.is_empty() => fact.lines.push(line),
            _ => facts.push(Fact::new(name, &line)),
        }
    }
    facts
}

fn counts(preview: &Preview) -> Part {
    let Preview { bound, told, .. } = preview;
    let counts = [
        ("objects in the state", told.objects),
        ("destroyed", bound.destroyed()),
        ("of these hold data", told.data.len()),
        ("forgotten, not destroyed", bound.dropped()),
        ("already gone", bound.gone.len()),
    ];
    let rows = counts.map(|(name, count)| vec![name.to_owned(), count.to_string()]);
    Part {
        heading: "How much goes".to_owned(),
        tone: Tone::Calm,
        body: Body::Table {
            head: ["Objects", "How many"].map(str::to_owned).into(),
            rows: rows.into(),
        },
    }
}

fn part(section: &Section, preview: &Preview) -> Part {
    let Preview {
        bound,
        told,
        values,
        ..
    } = preview;
    let by_address = values.by_address();
    let of = |address: &str, deposed: Option<&str>| by_address.get(&(address, deposed)).copied();
    let (tone, changes) = match section.about {
        About::Data if !told.data.is_empty() => {
            let items = told.data.iter().map(|data| {
                let values = of(&data.address, None);
                lost(data, bound, values)
            });
            (Tone::Grave, Some(items.collect()))
        }
        About::Destroyed => {
            let changes = destroyed_as_well(bound, told).into_iter();
            let items = changes.map(|change| {
                let values = of(&change.address, change.deposed.as_deref());
                Item::of(change, values)
            });
            (Tone::Calm, Some(items.collect()))
        }
        About::Beside => (Tone::Notice, None),
        About::What | About::NotInUse | About::Data | About::Totals => (Tone::Calm, None),
    };
    let body = match changes {
        Some(changes) => Body::Changes {
            changes,
            left_out: if section.about == About::Destroyed {
                values.left_out
            } else {
                0
            },
        },
        None => Body::Lines(section.rows.iter().map(|row| row.join(", ")).collect()),
    };
    Part {
        heading: section.heading.clone(),
        tone,
        body,
    }
}

/// An object that goes with its data.
fn lost(data: &Data, bound: &Bound, values: Option<&crate::terraform::values::ValuesOf>) -> Item {
    let known_as = data
        .identity
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let known_as: Vec<String> = known_as.collect();
    let mut changes = bound.changes.iter();
    let change = changes.find(|c| c.address == data.address && c.deposed.is_none());
    let mut item = match change {
        Some(change) => Item::of(change, values),
        // Only a deposed object is left of it.
        None => Item {
            address: data.address.clone(),
            action: Action::Destroy,
            words: Action::Destroy.word().to_owned(),
            data: None,
            notes: Vec::new(),
            values: values.cloned(),
        },
    };
    item.data = Some(data.what.clone());
    if !known_as.is_empty() {
        item.notes
            .insert(0, format!("known as {}", known_as.join(", ")));
    }
    item
}

fn lifted(reviewed: &Reviewed) -> Option<Part> {
    let Reviewed { lifted, .. } = reviewed;
    let lines = lifted.iter().filter_map(|objection| {
        let by = objection.lifted_by?;
        Some(format!("lifted by {by}: {objection}"))
    });
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| Part {
        heading: "What speaks against it, and was lifted".to_owned(),
        tone: Tone::Notice,
        body: Body::Lines(lines),
    })
}
