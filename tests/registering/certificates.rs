//! A Jenkins whose certificate is not taken: told at once, by what is wrong with it, since the same stays so.

use rcgen::CertificateParams;

use crate::estate::{Estate, GIT, ended};
use crate::jenkins::{BASE, TOKEN};
use crate::proxy::Proxy;

const HOST: &str = "jenkins.example.test";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Trusted {
    Yes,
    No,
}

/// Registers an app by a Jenkins that shows this certificate; the code, and what is said.
fn registered(certificate: &CertificateParams, trusted: Trusted) -> (i32, String, usize) {
    let estate = Estate::new(1);
    let proxy = Proxy::showing(certificate, estate.double.address(), HOST);
    estate.settings_with(GIT, &format!("https://{HOST}{BASE}"));
    let file = estate.path().join("ca.pem");
    std::fs::write(&file, &proxy.certificate).unwrap();
    let mut program = estate.program();
    program.env("HTTPS_PROXY", &proxy.url);
    if trusted == Trusted::Yes {
        program.env("SSL_CERT_FILE", &file);
    }
    let run = program
        .args(["--id", "app0-deploy", "--app-path", "app0"])
        .args(["--repo", "example/Many", "--jenkins-job", "AaC/Many"]);
    let (code, said) = ended(run.output().unwrap());
    assert!(!said.contains(TOKEN), "{said}");
    (code, said, proxy.connections())
}

#[test]
fn a_certificate_is_told_by_what_is_wrong_with_it_after_one_try() {
    let sound = CertificateParams::new([HOST.to_owned()]).unwrap();
    let (code, said, _) = registered(&sound, Trusted::Yes);
    assert_eq!(code, 0, "{said}");

    let other = CertificateParams::new(["other.example.test".to_owned()]).unwrap();
    let mut old = sound.clone();
    old.not_after = rcgen::date_time_ymd(2020, 1, 1);
    for (certificate, trusted, expected) in [
        (
            sound,
            Trusted::No,
            "is by an authority that is not trusted here: add the authority's certificate, in PEM, to those of this machine, or to the file that SSL_CERT_FILE names",
        ),
        (other, Trusted::Yes, "is made for another name"),
        (old, Trusted::Yes, "does not hold at this time"),
    ] {
        let (code, said, connections) = registered(&certificate, trusted);
        assert_eq!((code, connections), (1, 1), "{said}");
        let told = format!("the certificate of https://{HOST} {expected}");
        assert!(said.contains(&told), "{said}");
    }
}
