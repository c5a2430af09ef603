//! What speaks against a producer, judged on what was gathered.

pub mod rc;
#[cfg(test)]
mod tests;

use sha2::{Digest, Sha256};

use crate::jenkins::{Build, Job};
use crate::names::{AppName, CommitSha, JobName, StageName};
use crate::producers::Producer;
use crate::producers::edit::DEPLOY;
use crate::yaml;

use super::artifact_of;
use rc::Source;

/// What was gathered.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The repository; nothing where the producer has none.
    pub repo: Option<RepoSeen>,
    /// The job.
    pub job: JobSeen,
    /// Other producers on the same job.
    pub others: Vec<Producer>,
}

/// What was seen of the repository.
#[derive(Clone, Debug)]
pub enum RepoSeen {
    /// It is not what was named, and why.
    Wrong(String),
    /// It was read.
    Read {
        /// The registry's entries for it and the path.
        apps: Vec<AppSeen>,
        /// Entries of the registry that could not be understood.
        hidden: Vec<String>,
        /// What the stages track.
        revisions: Vec<Revision>,
        /// `.architecturerc`, where it is there.
        rc: Option<Vec<u8>>,
        /// Its sources, filled in, and whether they match.
        sources: Vec<(String, Source)>,
    },
}

/// An entry of the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppSeen {
    /// Its key.
    pub name: AppName,
    /// Its stages.
    pub stages: Vec<StageName>,
}

/// A branch, tag or commit that stages track.
#[derive(Clone, Debug)]
pub struct Revision {
    /// As the registry writes it.
    pub name: String,
    /// The stages.
    pub stages: Vec<String>,
    /// Its commit, or why there is none.
    pub commit: Result<CommitSha, String>,
    /// The path of the chart's description there, and its content.
    pub chart: Option<(String, Vec<u8>)>,
}

/// What was seen of the job.
#[derive(Clone, Debug)]
pub enum JobSeen {
    /// It is not what was named, and why.
    Wrong(String),
    /// It was read.
    Read {
        /// The job.
        job: Job,
        /// The artifact of its last successful build, where that one is green and has it.
        artifact: Option<Vec<u8>>,
    },
}

/// The artifact that proves the producer.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Artifact {
    /// The job.
    pub job: JobName,
    /// The number of the build.
    pub build: u64,
    /// Its path in the build.
    pub path: String,
    /// Its address, for people.
    pub url: String,
    /// Of its bytes, in hexadecimal digits.
    pub sha256: String,
}

/// The judgement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// What forbids it.
    pub faults: Vec<String>,
    /// What the caller should see to.
    pub warnings: Vec<String>,
    /// What was not looked at.
    pub notes: Vec<String>,
    /// The proof; nothing where there is none.
    pub artifact: Option<Artifact>,
}

/// Judges the producer. `id_key` is the key of an artifact that holds its producer's id.
pub fn judge(producer: &Producer, facts: &Facts, id_key: &str) -> Judged {
    let mut judged = Judged::default();
    match &facts.repo {
        None => {}
        Some(RepoSeen::Wrong(why)) => judged.faults.push(why.clone()),
        Some(seen) => repository(producer, seen, &mut judged),
    }
    shared_job(producer, &facts.others, &mut judged);
    match &facts.job {
        JobSeen::Wrong(why) => judged.faults.push(why.clone()),
        JobSeen::Read { job, artifact } => {
            match proof(producer, job, artifact.as_deref(), id_key) {
                Ok(artifact) => judged.artifact = Some(artifact),
                Err(why) => judged.faults.push(why),
            }
        }
    }
    judged
}

fn repository(producer: &Producer, seen: &RepoSeen, judged: &mut Judged) {
    let RepoSeen::Read {
        apps,
        hidden,
        revisions,
        rc,
        sources,
    } = seen
    else {
        return;
    };
    let place = where_it_is(producer);
    if let [first, second, ..] = apps.as_slice() {
        judged.warnings.push(format!(
            "the registry has {} and {} for {place}: the ids in the model are made of one chart's name, so keep one of them",
            first.name, second.name
        ));
    }
    let mut charts = Vec::new();
    for revision in revisions {
        let Revision { name, stages, .. } = revision;
        if let Err(why) = &revision.commit {
            let by = match stages.as_slice() {
                [] => String::new(),
                stages => format!(", which {} of the registry tracks", stages.join(" and ")),
            };
            let looked = format!("{name}{by} could not be looked at: {why}");
            judged.warnings.push(looked);
            continue;
        }
        match &revision.chart {
            None => judged.notes.push(format!(
                "{place} has no chart at {name}, so no chart's name is compared"
            )),
            Some((file, content)) => match chart_name(content) {
                Ok(chart) => {
                    for app in apps.iter().filter(|app| app.name.as_str() != chart) {
                        judged.faults.push(format!(
                            "{file} at {name} has the name {chart:?}, and the registry calls the app {:?}: the model's ids are made of the one and Argo CD's names of the other, so make them equal",
                            app.name.as_str()
                        ));
                    }
                    charts.push(chart);
                }
                Err(why) => judged.faults.push(format!("{file} at {name}: {why}")),
            },
        }
    }
    if apps.is_empty() && (!charts.is_empty() || !hidden.is_empty()) {
        judged.warnings.push(match hidden.as_slice() {
            [] => format!(
                "the registry has no app for {place}: register the app, or correct --app-path"
            ),
            hidden => format!(
                "the registry has no app for {place} that can be understood: {}",
                hidden.join("; ")
            ),
        });
    }
    identity(producer, apps, &charts, judged);
    if !apps.is_empty() || !charts.is_empty() {
        rc::judge(rc.as_deref(), sources, &place, judged);
    }
}

/// `example/ShopDeploy` or `example/PlatformDeploy at shop/`.
fn where_it_is(producer: &Producer) -> String {
    let repo = producer.repo.as_ref().map(ToString::to_string);
    let repo = repo.unwrap_or_default();
    match &producer.path {
        Some(path) => format!("{repo} at {path}/"),
        None => repo,
    }
}

fn chart_name(content: &[u8]) -> Result<String, String> {
    let read = yaml::utf8(content).and_then(yaml::parse);
    let chart = read.map_err(|error| format!("{}: {error}", error.place()))?;
    let name = chart.get("name").ok_or("it has no name")?;
    let text = name.text();
    text.map(str::to_owned)
        .map_err(|error| format!("{}: {error}", error.place()))
}

/// `<app>-deploy`, or `<app>-<stage>-deploy` for one stage of several that are published.
fn identity(producer: &Producer, apps: &[AppSeen], charts: &[String], judged: &mut Judged) {
    let id = producer.id.as_str();
    let mut wanted: Vec<String> = Vec::new();
    for app in apps {
        wanted.push(format!("{}{DEPLOY}", app.name));
        let stages = app.stages.iter();
        wanted.extend(stages.map(|stage| format!("{}-{stage}{DEPLOY}", app.name)));
    }
    if apps.is_empty() {
        wanted.extend(charts.iter().map(|chart| format!("{chart}{DEPLOY}")));
    }
    wanted.dedup();
    if !wanted.is_empty() && !wanted.iter().any(|wanted| wanted == id) {
        judged.warnings.push(format!(
            "the id of a deploy repository's producer is made of the app's name: {}, and not {id}",
            wanted.join(" or ")
        ));
    }
}

fn shared_job(producer: &Producer, others: &[Producer], judged: &mut Judged) {
    let without: Vec<&str> = std::iter::once(producer)
        .chain(others)
        .filter(|each| each.path.is_none())
        .map(|each| each.id.as_str())
        .collect();
    if !others.is_empty() && !without.is_empty() {
        judged.faults.push(format!(
            "{} producers would share the job {}, so each of them needs a path, which is missing for {}: give --app-path, and re-point those without one",
            others.len() + 1,
            producer.job,
            without.join(" and ")
        ));
    }
}

fn proof(
    producer: &Producer,
    job: &Job,
    content: Option<&[u8]>,
    id_key: &str,
) -> Result<Artifact, String> {
    let file = artifact_of(&producer.id, producer.path.as_ref());
    let none = |seen: String| {
        format!(
            "no green build of {} has archived {file}: register the producer after one has ({seen})",
            producer.job
        )
    };
    let Some(build) = &job.last_successful else {
        return Err(none(match &job.last_completed {
            None => "no build of it has ended".to_owned(),
            Some(last) => format!("its last build, {}, ended {}", last.number, word(last)),
        }));
    };
    if !build.is_green() {
        return Err(none(format!(
            "its last successful build, {}, from which the artifacts are copied, ended {}",
            build.number,
            word(build)
        )));
    }
    if !build.artifacts.contains(&file) {
        return Err(none(format!(
            "its last green build, {}, archived {}",
            build.number,
            some_of(&build.artifacts)
        )));
    }
    let content = content.ok_or_else(|| {
        none(format!(
            "build {} lists the file, and it is gone",
            build.number
        ))
    })?;
    let wrong = |why: String| {
        format!(
            "{file} of build {} of {}: {why}",
            build.number, producer.job
        )
    };
    let read = yaml::utf8(content).and_then(yaml::parse);
    let root = read.map_err(|error| wrong(format!("{}: {error}", error.place())))?;
    match root.get(id_key) {
        Some(id) if id.raw_text() == producer.id.as_str() => {}
        Some(id) => {
            let other = id.raw_text();
            return Err(wrong(format!(
                "its {id_key:?} is {other:?}, and the producer is {}: generate it with this id, or register that one",
                producer.id
            )));
        }
        None => {
            return Err(wrong(format!(
                "it has no key {id_key:?} with the producer's id, so it is no artifact of the generator; producers.id_key in the settings names another key"
            )));
        }
    }
    let digest = Sha256::digest(content);
    Ok(Artifact {
        job: producer.job.clone(),
        build: build.number,
        url: match build.url.as_str() {
            "" => file.clone(),
            url => format!("{}/artifact/{file}", url.trim_end_matches('/')),
        },
        path: file,
        sha256: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
    })
}

fn word(build: &Build) -> &str {
    match build.result.as_str() {
        "" => "without a result",
        result => result,
    }
}

/// How many artifacts are named.
const NAMED: usize = 5;

fn some_of(artifacts: &[String]) -> String {
    match artifacts {
        [] => "nothing".to_owned(),
        few if few.len() <= NAMED => few.join(", "),
        many => format!(
            "{} and {} more",
            many.iter()
                .take(NAMED)
                .cloned()
                .collect::<Vec<_>>()
                .join(", "),
            many.len() - NAMED
        ),
    }
}
