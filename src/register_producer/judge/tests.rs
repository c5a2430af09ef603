//! What speaks against a producer.
use super::*;

fn producer(id: &str, path: Option<&str>) -> Producer {
    Producer {
        id: id.parse().unwrap(),
        repo: Some("example/Shop".parse().unwrap()),
        job: "AaC/Shop".parse().unwrap(),
        path: path.map(|path| path.parse().unwrap()),
        is_self: false,
        default_logo: None,
    }
}

fn build(result: &str, artifacts: &[&str]) -> Build {
    Build {
        number: 7,
        result: result.to_owned(),
        url: "https://ci.example.com/job/Shop/7/".to_owned(),
        artifacts: artifacts.iter().map(ToString::to_string).collect(),
    }
}

fn of_job(successful: Option<Build>, completed: Option<Build>, content: Option<&str>) -> Judged {
    let facts = Facts {
        repo: None,
        job: JobSeen::Read {
            job: Job {
                last_successful: successful,
                last_completed: completed,
            },
            artifact: content.map(|text| text.as_bytes().to_vec()),
        },
        others: Vec::new(),
    };
    judge(&producer("shop-deploy", None), &facts, "producer")
}

const FILE: &str = "docs/architecture/shop-deploy.yaml";

#[test]
fn a_green_build_with_the_artifact_of_this_id_is_the_proof() {
    let judged = of_job(
        Some(build("SUCCESS", &[FILE])),
        None,
        Some("producer: shop-deploy\n"),
    );
    assert_eq!(judged.faults, Vec::<String>::new());
    let artifact = judged.artifact.unwrap();
    assert_eq!(
        artifact.url,
        format!("https://ci.example.com/job/Shop/7/artifact/{FILE}")
    );
    // By sha256sum.
    assert_eq!(
        artifact.sha256,
        "e8c732207c0d3f416af4c1e2332be7ccafd2c9786bf50fafc7e84afdbb0765f4"
    );
}

#[test]
fn without_a_green_build_that_has_it_the_sentence_says_what_was_seen() {
    for (successful, completed, seen) in [
        (None, None, "no build of it has ended"),
        (
            None,
            Some(build("FAILURE", &[])),
            "its last build, 7, ended FAILURE",
        ),
        (Some(build("UNSTABLE", &[FILE])), None, "ended UNSTABLE"),
        (Some(build("SUCCESS", &[])), None, "archived nothing"),
        (
            Some(build("SUCCESS", &["1", "2", "3", "4", "5", "6", "7"])),
            None,
            "archived 1, 2, 3, 4, 5 and 2 more",
        ),
        (
            Some(build("SUCCESS", &[FILE])),
            None,
            "lists the file, and it is gone",
        ),
    ] {
        let judged = of_job(successful, completed, None);
        let [fault] = judged.faults.as_slice() else {
            panic!("{judged:?}");
        };
        let sentence = format!(
            "no green build of AaC/Shop has archived {FILE}: register the producer after one has ("
        );
        assert!(fault.starts_with(&sentence), "{fault}");
        assert!(fault.contains(seen), "{fault}");
        assert_eq!(judged.artifact, None);
    }
}

#[test]
fn an_artifact_that_is_no_yaml_or_of_another_producer_is_a_fault() {
    for (content, expected) in [
        ("a: [", "this is not valid YAML"),
        ("elements: []\n", "it has no key \"producer\""),
        (
            "producer: cart-deploy\n",
            "its \"producer\" is \"cart-deploy\", and the producer is shop-deploy",
        ),
        ("- producer: shop-deploy\n", "it has no key"),
    ] {
        let judged = of_job(Some(build("SUCCESS", &[FILE])), None, Some(content));
        assert!(judged.faults[0].contains(expected), "{judged:?}");
    }
}

#[test]
fn several_producers_of_one_job_need_a_path_each() {
    let facts = |others| Facts {
        repo: None,
        job: JobSeen::Wrong("no job".to_owned()),
        others,
    };
    let with = producer("a-deploy", Some("a"));
    let without = producer("b-deploy", None);
    for (new, other, faults) in [
        (&with, &with, 1),
        (&with, &without, 2),
        (&without, &with, 2),
    ] {
        let judged = judge(new, &facts(vec![other.clone()]), "producer");
        assert_eq!(judged.faults.len(), faults, "{judged:?}");
    }
}

#[test]
fn a_source_is_a_path_or_a_pattern() {
    for (source, path) in [
        ("chart/", Some("chart")),
        ("./architecture.yaml", Some("architecture.yaml")),
        ("/chart/", Some("chart")),
        (".", Some("")),
        (":(glob)**/docs/architecture/**", None),
        ("*.yaml", None),
    ] {
        assert_eq!(rc::plain(source), path, "{source}");
    }
}
