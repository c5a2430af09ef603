//! Registrations at the same time, by the program itself.

use crate::estate::{Estate, FILE, shown};
use crate::jenkins::{Fault, TOKEN};

#[test]
fn two_registrations_at_once_both_land() {
    Estate::new(2).all_land(2);
}

#[test]
fn twenty_registrations_at_once_all_land() {
    Estate::new(20).all_land(20);
}

#[test]
fn a_second_run_of_the_same_does_nothing_and_one_after_a_kill_goes_on() {
    let estate = Estate::new(1);
    let mut killed = estate.start(0, &[]);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let (code, said) = estate.run(0, &["--build", "7", "--requested-by", "Ada"]);
    assert_eq!(code, 0, "{said}");
    let message = shown(estate.path(), &["log", "-1", "--format=%B", "main"]);
    let url = format!(
        "{}/job/AaC/job/Many/3/artifact/app0/docs/architecture/app0-deploy.yaml",
        estate.double.url()
    );
    // Of `producer: app0-deploy` and its line end, by sha256sum.
    let sha = "364f673205f63498741b12fbe73421c52c4478cc6f8e8af0e75b3f31e0c0efb5";
    assert_eq!(
        message.trim_end(),
        format!(
            "Register app0-deploy\n\nAaC/Many has archived app0/docs/architecture/app0-deploy.yaml in its green build 3.\n\nBuild: 7\nArtifact: {url}\nArtifact-SHA-256: {sha}\nRequested-By: Ada"
        )
    );
    let before = shown(estate.path(), &["rev-parse", "main"]);
    let (code, said) = estate.run(0, &[]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("nothing, the file says it already"), "{said}");
    assert_eq!(shown(estate.path(), &["rev-parse", "main"]), before);
}

#[test]
fn a_jenkins_that_fails_ends_with_10_and_one_that_lets_nobody_in_with_1() {
    let estate = Estate::new(1);
    for (fault, code) in [(Fault::Status(503), 10), (Fault::Status(401), 1)] {
        estate.double.fail(&[fault; 3]);
        let (ended, said) = estate.run(0, &[]);
        assert_eq!(ended, code, "{said}");
        assert!(!said.contains(TOKEN), "{said}");
        assert_eq!(estate.file(), FILE);
        estate.double.fail_no_more();
    }
}
