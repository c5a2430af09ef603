//! Reading the registry, the deploy repository and Jenkins: everything that is judged.

use crate::estate::read_registry;
use crate::forge::{Forge, ForgeError};
use crate::jenkins::{Jenkins, JenkinsError};
use crate::names::{AppPath, CommitSha, OwnedRepo, ProducerId, RepoName};
use crate::producers::{Producer, Producers};
use crate::registry::{App, Registry};
use crate::report;
use crate::settings::{JenkinsSettings, ProducersSettings, Settings, SettingsOrigin};

use super::judge::rc::{self, Source};
use super::judge::{AppSeen, Facts, JobSeen, RepoSeen, Revision};
use super::{RegisterError, artifact_of};

/// Reads what speaks for and against the producer. `text` is the file as it is.
pub(super) async fn gather(
    producer: &Producer,
    text: &str,
    forge: &Forge,
    settings: &Settings,
    place: &ProducersSettings,
) -> Result<Facts, RegisterError> {
    let jenkins = open_jenkins(settings)?;
    let repo = match &producer.repo {
        Some(repo) => Some(repository(repo, producer, forge, settings).await?),
        None => None,
    };
    let job = job(producer, &jenkins).await?;
    // What is wrong in the file is told by the edit.
    let others = Producers::read(text, &place.file)
        .map(|all| {
            let others = all.all().filter(|other| other.id != producer.id);
            let same_job = others.filter(|other| other.job == producer.job);
            same_job.cloned().collect()
        })
        .unwrap_or_default();
    Ok(Facts { repo, job, others })
}

fn open_jenkins(settings: &Settings) -> Result<Jenkins, RegisterError> {
    let file = || settings.file.clone();
    match &settings.jenkins {
        None => Err(RegisterError::NoJenkins { file: file() }),
        Some(JenkinsSettings::Folder(_)) if settings.origin != SettingsOrigin::Sandbox => {
            Err(RegisterError::FolderOutsideSandbox { file: file() })
        }
        Some(jenkins) => Ok(Jenkins::open(jenkins)?),
    }
}

async fn job(producer: &Producer, jenkins: &Jenkins) -> Result<JobSeen, RegisterError> {
    let job = match jenkins.job(&producer.job).await {
        Ok(job) => job,
        Err(error) if error.is_about_the_job() => return Ok(JobSeen::Wrong(error.to_string())),
        Err(error) => return Err(error.into()),
    };
    let file = artifact_of(&producer.id, producer.path.as_ref());
    let has_it =
        |build: &&crate::jenkins::Build| build.is_green() && build.artifacts.contains(&file);
    let artifact = match job.last_successful.as_ref().filter(has_it) {
        Some(build) => match jenkins.artifact(&producer.job, build, &file).await {
            // One that nobody would ever read whole is no artifact, whatever else it is.
            Err(error @ JenkinsError::TooLarge { .. }) => {
                return Ok(JobSeen::Wrong(error.to_string()));
            }
            artifact => artifact?,
        },
        None => None,
    };
    if let Some(build) = &job.last_successful {
        let Producer { job, .. } = producer;
        report::heading(
            "build",
            format_args!("{job} {} {}", build.number, build.result),
        );
    }
    Ok(JobSeen::Read { job, artifact })
}

/// What is not there is a fault for the judge; what could not be read ends the run.
fn or_told<T>(read: Result<T, ForgeError>) -> Result<Result<T, String>, RegisterError> {
    match read {
        Ok(value) => Ok(Ok(value)),
        Err(error) if error.is_about_the_question() => Ok(Err(report::one_line(&error))),
        Err(error) => Err(error.into()),
    }
}

async fn repository(
    owned: &OwnedRepo,
    producer: &Producer,
    forge: &Forge,
    settings: &Settings,
) -> Result<RepoSeen, RegisterError> {
    let repo = owned.name();
    let known = forge.known_url(repo);
    // Of a folder the owner of its repositories is not known.
    let full = known.full_name();
    if full != repo.as_str() && full != owned.to_string() {
        return Ok(RepoSeen::Wrong(format!(
            "{owned} is not on the forge of the settings, which knows {full}: write --repo {full}, or use the settings of its own forge"
        )));
    }
    if let Err(why) = or_told(forge.canonical_name(repo).await)? {
        return Ok(RepoSeen::Wrong(why));
    }
    let registry = read_registry(forge, settings).await?;
    let in_repo = |app: &&App| app.repo.same_repository(&known);
    let at_path = |app: &&App| app.path == producer.path;
    let apps: Vec<&App> = registry.apps().filter(in_repo).filter(at_path).collect();
    let mut revisions = Vec::new();
    for (revision, stages) in tracked(&producer.id, &apps) {
        let seen = match or_told(forge.revision(repo, &revision).await)? {
            Ok(commits) => commits.into_iter().next().ok_or_else(|| {
                format!("{repo} has neither a branch nor a tag nor a commit {revision}")
            }),
            Err(why) => Err(why),
        };
        let chart = match &seen {
            Ok(commit) => Some(chart(forge, repo, commit, producer.path.as_ref()).await?),
            Err(_) => None,
        };
        revisions.push(Revision {
            name: revision,
            stages,
            commit: seen,
            chart: chart.flatten(),
        });
    }
    let first = revisions.iter().find_map(|r| r.commit.as_ref().ok());
    let (rc, sources) = match first {
        Some(commit) => architecturerc(forge, repo, commit, producer).await?,
        None => (None, Vec::new()),
    };
    Ok(RepoSeen::Read {
        apps: apps.iter().map(|app| seen(app)).collect(),
        hidden: hidden(&registry),
        revisions,
        rc,
        sources,
    })
}

fn seen(app: &App) -> AppSeen {
    AppSeen {
        name: app.name.clone(),
        stages: app.stages.iter().map(|stage| stage.name.clone()).collect(),
    }
}

/// Entries of the registry that could not be understood.
fn hidden(registry: &Registry) -> Vec<String> {
    let faults = registry.faults().iter().filter(|fault| fault.hides);
    faults.map(ToString::to_string).collect()
}

/// The revisions to look at, with the stages that track each: those of the stage that the id names, else those of all of the app's stages.
fn tracked(id: &ProducerId, apps: &[&App]) -> Vec<(String, Vec<String>)> {
    let mut revisions: Vec<(String, Vec<String>)> = Vec::new();
    for app in apps {
        let named = |stage: &&crate::registry::Stage| {
            id.as_str() == format!("{}-{}-deploy", app.name, stage.name)
        };
        let one = app.stages.iter().find(named);
        for stage in one.map_or(app.stages.as_slice(), std::slice::from_ref) {
            let revision = stage.target_revision.as_deref().unwrap_or("main");
            let stage = stage.name.to_string();
            match revisions.iter_mut().find(|(known, _)| known == revision) {
                Some((_, stages)) => stages.push(stage),
                None => revisions.push((revision.to_owned(), vec![stage])),
            }
        }
    }
    if revisions.is_empty() {
        revisions.push(("main".to_owned(), Vec::new()));
    }
    revisions
}

/// The file, or nothing where there is none.
async fn file(
    forge: &Forge,
    repo: &RepoName,
    commit: &CommitSha,
    path: &str,
) -> Result<Option<Vec<u8>>, RegisterError> {
    match forge.read(repo, commit, path).await {
        Ok(content) => Ok(Some(content)),
        Err(ForgeError::NoFile { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn chart(
    forge: &Forge,
    repo: &RepoName,
    commit: &CommitSha,
    path: Option<&AppPath>,
) -> Result<Option<(String, Vec<u8>)>, RegisterError> {
    let place = match path {
        Some(path) => format!("{path}/chart/Chart.yaml"),
        None => "chart/Chart.yaml".to_owned(),
    };
    let content = file(forge, repo, commit, &place).await?;
    Ok(content.map(|content| (place, content)))
}

async fn architecturerc(
    forge: &Forge,
    repo: &RepoName,
    commit: &CommitSha,
    producer: &Producer,
) -> Result<(Option<Vec<u8>>, Vec<(String, Source)>), RegisterError> {
    let Some(content) = file(forge, repo, commit, rc::FILE).await? else {
        return Ok((None, Vec::new()));
    };
    let mut seen = Vec::new();
    for source in rc::sources(&content, producer) {
        let found = match rc::plain(&source) {
            None => Source::Pattern,
            Some("") => Source::There,
            Some(path) if forge.has_folder(repo, commit, path).await? => Source::There,
            Some(path) => {
                let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
                let files = forge.files_in(repo, commit, folder).await?;
                match files.is_some_and(|files| files.iter().any(|file| file == name)) {
                    true => Source::There,
                    false => Source::Missing,
                }
            }
        };
        seen.push((source, found));
    }
    Ok((Some(content), seen))
}
