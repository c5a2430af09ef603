//! A folder that answers as Jenkins does, laid out as Jenkins' own home: `jobs/<folder>/jobs/<job>/api.json` is what it would say of the
//! job, `builds/<number>/archive/` below it what a build archived.

use std::io;
use std::path::{Path, PathBuf};

use crate::names::JobName;

use super::answer::{self, Told};
use super::{Build, JenkinsError, Job};

/// The folder.
pub struct FolderJenkins {
    pub(super) folder: PathBuf,
}

impl FolderJenkins {
    fn place(&self) -> String {
        self.folder.display().to_string()
    }

    fn of(&self, job: &JobName) -> PathBuf {
        let mut folder = self.folder.clone();
        for item in job.items() {
            folder.extend(["jobs", item]);
        }
        folder
    }

    pub(super) fn job(&self, job: &JobName) -> Result<Job, JenkinsError> {
        let (place, job) = (self.place(), job.clone());
        let folder = self.of(&job);
        let file = folder.join("api.json");
        let Some(json) = read(&file)? else {
            return Err(match folder.is_dir() {
                true => JenkinsError::NotAJob {
                    place,
                    job,
                    class: "a folder".to_owned(),
                },
                false => JenkinsError::NoJob {
                    place,
                    job,
                    who: "anybody".to_owned(),
                },
            });
        };
        match answer::read(&json, &job) {
            Ok(Told::Job(told)) => Ok(told),
            Ok(Told::Spelled(canonical)) => Err(JenkinsError::OtherSpelling {
                place,
                given: job,
                canonical,
            }),
            Ok(Told::Other(class)) => Err(JenkinsError::NotAJob { place, job, class }),
            Err(source) => Err(JenkinsError::File {
                file,
                source: source.into(),
            }),
        }
    }

    pub(super) fn artifact(
        &self,
        job: &JobName,
        build: &Build,
        path: &str,
    ) -> Result<Option<Vec<u8>>, JenkinsError> {
        let build = self.of(job).join("builds").join(build.number.to_string());
        read(&build.join("archive").join(path))
    }
}

fn read(file: &Path) -> Result<Option<Vec<u8>>, JenkinsError> {
    match std::fs::read(file) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(JenkinsError::File {
            file: file.to_owned(),
            source,
        }),
    }
}
