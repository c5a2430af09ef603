//! What each answer of a Jenkins server comes to.

use stagewright::jenkins::{Build as SeenBuild, Jenkins, JenkinsError, Job};
use stagewright::names::JobName;
use stagewright::settings::{JenkinsAccess, JenkinsSettings, TokenPlace};

use crate::jenkins::{Build, Fault, JenkinsDouble, TOKEN, USER};

const JOB: &str = "AaC/Home Assistant Fleet";
const FILE: &str = "docs/architecture/fleet.yaml";

struct Bench {
    double: JenkinsDouble,
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        let double = JenkinsDouble::serve();
        let artifact = (FILE.to_owned(), "producer: fleet\n".to_owned());
        let green = Build {
            number: 12,
            result: "SUCCESS",
            artifacts: vec![artifact],
        };
        let red = Build {
            number: 13,
            result: "FAILURE",
            artifacts: Vec::new(),
        };
        double.job(JOB, &[green, red]);
        Bench {
            double,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn with_token(&self, token: &str) -> Jenkins {
        let file = self.folder.path().join("token");
        std::fs::write(&file, format!("{token}\n")).unwrap();
        self.open(Some(JenkinsAccess {
            user: USER.to_owned(),
            token: TokenPlace::File(file),
        }))
    }

    fn open(&self, access: Option<JenkinsAccess>) -> Jenkins {
        let url = self.double.url();
        Jenkins::open(&JenkinsSettings::Http { url, access }).unwrap()
    }

    async fn job(&self, name: &str) -> Result<Job, JenkinsError> {
        let name: JobName = name.parse().unwrap();
        self.with_token(TOKEN).job(&name).await
    }

    /// The error when the next answers go wrong so.
    async fn error(&self, faults: &[Fault]) -> JenkinsError {
        self.double.fail(faults);
        self.job(JOB).await.unwrap_err()
    }
}

fn name() -> JobName {
    JOB.parse().unwrap()
}

#[tokio::test]
async fn a_job_in_a_folder_is_read_with_its_builds_and_its_artifact_below_the_base_path() {
    let bench = Bench::new();
    let jenkins = bench.with_token(TOKEN);

    let job = jenkins.job(&name()).await.unwrap();

    let build: &SeenBuild = job.last_successful.as_ref().unwrap();
    assert_eq!((build.number, build.is_green()), (12, true));
    assert_eq!(build.artifacts, [FILE]);
    assert_eq!(job.last_completed.as_ref().unwrap().result, "FAILURE");
    let content = jenkins.artifact(&name(), build, FILE).await.unwrap();
    assert_eq!(content.unwrap(), b"producer: fleet\n");
    let gone = jenkins
        .artifact(&name(), build, "docs/architecture/a b#.yaml")
        .await;
    assert_eq!(gone.unwrap(), None);
    let asked = bench.double.asked();
    let path = "GET /ci/jenkins/job/AaC/job/Home%20Assistant%20Fleet/";
    assert!(
        asked[0].starts_with(&format!("{path}api/json?tree=fullName")),
        "{asked:?}"
    );
    assert_eq!(asked[1], format!("{path}12/artifact/{FILE}"));
    assert_eq!(
        asked[2],
        format!("{path}12/artifact/docs/architecture/a%20b%23.yaml")
    );
}

#[tokio::test]
async fn a_job_without_a_green_build_is_a_job() {
    let bench = Bench::new();
    bench.double.job("New", &[]);
    let job = bench.job("New").await.unwrap();
    assert_eq!((job.last_successful, job.last_completed), (None, None));
    let unstable = Build {
        number: 1,
        result: "UNSTABLE",
        artifacts: Vec::new(),
    };
    bench.double.job("New", &[unstable]);
    let build = bench.job("New").await.unwrap().last_successful.unwrap();
    assert!(!build.is_green());
}

#[tokio::test]
async fn a_folder_another_spelling_and_nothing_at_all_are_told_apart() {
    let bench = Bench::new();
    for (asked, expected) in [
        (
            "AaC",
            "is no job that builds (com.cloudbees.hudson.plugins.folder.Folder)",
        ),
        (
            "AaC/home assistant fleet",
            "as AaC/Home Assistant Fleet: write it so",
        ),
        ("AaC/Nothing", "has no job AaC/Nothing that robot may see"),
    ] {
        let error = bench.job(asked).await.unwrap_err();
        assert!(error.is_about_the_job(), "{asked}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[tokio::test]
async fn who_is_not_let_in_is_told_why() {
    let bench = Bench::new();
    let nobody = bench.open(None).job(&name()).await.unwrap_err();
    assert!(
        matches!(nobody, JenkinsError::NotLoggedIn { .. }),
        "{nobody}"
    );
    let wrong = bench.with_token("another").job(&name()).await.unwrap_err();
    assert!(matches!(wrong, JenkinsError::NotAccepted { .. }), "{wrong}");
    assert!(!wrong.to_string().contains("another"), "{wrong}");
    let login = bench.error(&[Fault::Login]).await;
    assert!(matches!(login, JenkinsError::NotLoggedIn { .. }), "{login}");
    let refused = bench.error(&[Fault::Status(403)]).await;
    assert!(
        matches!(refused, JenkinsError::Forbidden { .. }),
        "{refused}"
    );
    for error in [nobody, wrong, login, refused] {
        assert!(!error.is_passing() && !error.is_about_the_job(), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_fails_is_asked_again_and_left_for_later() {
    let bench = Bench::new();
    bench.double.fail(&[Fault::Status(503), Fault::Cut]);
    assert!(bench.job(JOB).await.is_ok());
    assert_eq!(bench.double.asked().len(), 3);
    let error = bench.error(&[Fault::Status(503); 3]).await;
    assert!(error.is_passing(), "{error}");
    assert!(
        error
            .to_string()
            .contains("503 Service Unavailable, 3 times"),
        "{error}"
    );
    let error = bench.error(&[Fault::Cut; 3]).await;
    assert!(
        matches!(error, JenkinsError::NoAnswer { .. }) && error.is_passing(),
        "{error}"
    );
}

#[tokio::test]
async fn an_answer_that_is_not_of_jenkins_is_told_as_one() {
    let bench = Bench::new();
    let page = bench.error(&[Fault::Page]).await;
    assert!(page.to_string().contains("text/html"), "{page}");
    assert!(matches!(page, JenkinsError::NotJenkins { .. }), "{page}");
    let elsewhere = bench.error(&[Fault::Elsewhere]).await;
    let text = elsewhere.to_string();
    assert!(text.contains("https://sso.example.com/start for"), "{text}");
    assert!(!text.contains("secret"), "{text}");
    let huge = bench.error(&[Fault::Huge]).await;
    assert!(matches!(huge, JenkinsError::TooLarge { .. }), "{huge}");
}

#[tokio::test]
async fn an_answer_that_comes_piece_by_piece_is_read_whole() {
    let bench = Bench::new();
    bench.double.fail(&[Fault::Slow]);
    assert!(bench.job(JOB).await.unwrap().last_successful.is_some());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_left_for_later() {
    let bench = Bench::new();
    let jenkins = bench.with_token(TOKEN);
    drop(bench.double);
    let error = jenkins.job(&name()).await.unwrap_err();
    assert!(error.is_passing(), "{error}");
}

#[test]
fn a_token_that_is_not_there_is_told_by_its_place() {
    let settings = |token| JenkinsSettings::Http {
        url: "http://127.0.0.1:1".to_owned(),
        access: Some(JenkinsAccess {
            user: USER.to_owned(),
            token,
        }),
    };
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty");
    std::fs::write(&empty, "two words\n").unwrap();
    for (token, expected) in [
        (
            TokenPlace::Variable("NO_SUCH_TOKEN".to_owned()),
            "the variable NO_SUCH_TOKEN holds no",
        ),
        (
            TokenPlace::File(folder.path().join("none")),
            "could not be read",
        ),
        (TokenPlace::File(empty), "holds no API token"),
    ] {
        let Err(error) = Jenkins::open(&settings(token)) else {
            panic!("{expected}");
        };
        assert!(error.is_about_the_settings(), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}
