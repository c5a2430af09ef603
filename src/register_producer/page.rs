//! The report for people.

use crate::page::{self, Body, Fact, Page, Part, Tone, Verdict};
use crate::report::Outcome;

use super::result::RegisterReport;
use super::{Change, PROGRAM};

impl RegisterReport {
    /// The page.
    pub fn page(&self) -> Page {
        let change = &self.wanted.change;
        let progress = &self.progress;
        let mut facts = vec![Fact::new("producer", change.id())];
        if let Some(entry) = change.wanted() {
            let repo = entry.repo.as_ref();
            facts.extend(repo.map(|repo| Fact::new("repository", repo)));
            facts.push(Fact::new("Jenkins job", &entry.job));
            let path = entry.path.as_ref();
            facts.extend(path.map(|path| Fact::new("folder", path)));
        }
        if let Some(artifact) = &progress.artifact {
            facts.push(Fact::new("artifact", &artifact.url));
            facts.push(Fact::new("its SHA-256", &artifact.sha256));
        }
        let commit = progress.commit.as_ref();
        facts.extend(commit.map(|commit| Fact::new("by commit", commit)));
        let build = self.wanted.build_url();
        facts.extend(build.map(|url| Fact::new("build", &url)));
        let mut parts = Vec::new();
        if !progress.faults.is_empty() {
            parts.push(Part {
                heading: "What speaks against it".to_owned(),
                tone: Tone::Grave,
                body: Body::Lines(progress.faults.clone()),
            });
        }
        if let Some(shown) = &progress.shown {
            parts.push(Part {
                heading: "The change of the file".to_owned(),
                tone: Tone::Notice,
                body: Body::Lines(shown.diff.lines().map(str::to_owned).collect()),
            });
        }
        Page {
            kind: match change {
                Change::Register(_) => "Registration of a producer",
                Change::Repoint(_) => "Re-pointing of a producer",
                Change::Remove(_) => "Removal of a producer",
            }
            .to_owned(),
            target: change.id().to_string(),
            verdict: self.verdict(),
            warnings: progress.warnings.clone(),
            facts,
            parts,
            made: page::made(PROGRAM, jiff::Timestamp::now()),
        }
    }

    fn verdict(&self) -> Verdict {
        let progress = &self.progress;
        let (tone, word) = match self.outcome {
            Outcome::Done if progress.commit.is_some() => (Tone::Calm, "Done"),
            Outcome::Done if progress.shown.is_some() => {
                (Tone::Notice, "Shown: nothing was changed")
            }
            Outcome::Done => (Tone::Calm, "Nothing to do"),
            outcome => (Tone::Grave, outcome.word()),
        };
        Verdict {
            tone,
            word: word.to_owned(),
            error: self.error(),
            last_line: self.last_line(),
        }
    }
}
