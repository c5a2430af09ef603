use std::path::{Component, Path};
use std::process::Command;

use proptest::prelude::*;

use super::*;

fn error<T: std::str::FromStr<Err = NameError>>(text: &str) -> String {
    match text.parse::<T>() {
        Ok(_) => panic!("{text:?} was taken"),
        Err(error) => error.to_string(),
    }
}

fn url(text: &str) -> RepoUrl {
    text.parse().unwrap()
}

#[test]
fn a_stage_name_with_a_slash_is_refused_with_its_position() {
    assert_eq!(
        error::<StageName>("prd/x"),
        "\"prd/x\" is not a valid stage name because of the character \"/\" at position 4: it must be 1 to 63 of the characters a-z, 0-9 and -, with no - at either end, since Kubernetes names, a folder and a git branch are made of it"
    );
}

#[test]
fn an_error_escapes_control_characters_and_cuts_long_values() {
    assert!(error::<StageName>("a\u{1b}[2J").starts_with("\"a\\u{1b}[2J\" is not"));
    let long = "é".repeat(500);
    assert!(error::<StageName>(&long).starts_with(&format!("{:?}… is not", "é".repeat(80))));
}

#[test]
fn an_app_path_keeps_to_its_folder() {
    for good in ["headlamp", "team/headlamp", "a.b/c_d/e-f", "0"] {
        assert_eq!(good.parse::<AppPath>().unwrap().as_str(), good);
    }
    for (bad, part) in [
        ("", "being empty"),
        ("/a", "the \"/\" at its beginning"),
        ("a/", "the \"/\" at its end"),
        ("a//b", "an empty segment"),
        ("a/../b", "the segment \"..\""),
        ("./a", "the segment \".\""),
        (".git", "the segment \".git\""),
        ("-a", "the segment \"-a\""),
        ("a..b", "the segment \"a..b\""),
        ("a.lock/b", "the segment \"a.lock\""),
        ("a./b", "the segment \"a.\""),
        ("a b", "the character \" \" at position 2"),
        ("a\\b", "the character \"\\\\\" at position 2"),
    ] {
        let shown = error::<AppPath>(bad);
        assert!(shown.contains(&format!("because of {part}:")), "{shown}");
    }
    assert!(error::<AppPath>(&"a".repeat(201)).contains("its 201 characters"));
    assert!("a".repeat(200).parse::<AppPath>().is_ok());
}

#[test]
fn a_repository_name_is_what_github_and_a_ref_allow() {
    for good in ["FieldnotesDeploy", "a", "a.b-c_d", "x.git2", "x.locks"] {
        assert!(good.parse::<RepoName>().is_ok(), "{good}");
    }
    for bad in [
        "", ".", "..", "x.git", "X.GIT", "x.lock", "x.", "a..b", "-x", ".github", "o/r", "é", "a b",
    ] {
        assert!(bad.parse::<RepoName>().is_err(), "{bad}");
    }
    assert!("a".repeat(100).parse::<RepoName>().is_ok());
    assert!("a".repeat(101).parse::<RepoName>().is_err());
}

#[test]
fn an_owner_name_is_a_github_login() {
    for good in ["example", "Ex-ample-1", "a"] {
        assert!(good.parse::<OwnerName>().is_ok(), "{good}");
    }
    for bad in ["", "-a", "a-", "a--b", "a_b", "a.b"] {
        assert!(bad.parse::<OwnerName>().is_err(), "{bad}");
    }
    assert!("a".repeat(40).parse::<OwnerName>().is_err());
}

#[test]
fn a_commit_is_forty_lowercase_digits_and_its_beginning_seven() {
    let sha = "0123456789abcdef0123456789abcdef01234567";
    assert_eq!(sha.parse::<CommitSha>().unwrap().as_str(), sha);
    assert!(sha.to_uppercase().parse::<CommitSha>().is_err());
    assert!(sha[1..].parse::<CommitSha>().is_err());
    let short: CommitPrefix = "ABCDEF0".parse().unwrap();
    assert_eq!(short.as_str(), "abcdef0");
    assert_eq!(short.full(), None);
    let whole: CommitPrefix = sha.to_uppercase().parse().unwrap();
    assert_eq!(whole.full().unwrap().as_str(), sha);
    for bad in ["", "abcdef", "main", "--upload-pack=x", &format!("{sha}0")] {
        assert!(bad.parse::<CommitPrefix>().is_err(), "{bad}");
    }
}

#[test]
fn a_branch_name_that_is_taken_otherwise_is_refused() {
    for good in ["main", "release/1.2", "a@b", "é", "x/-y"] {
        assert!(good.parse::<BranchName>().is_ok(), "{good}");
    }
    for bad in [
        "",
        "-x",
        "a..b",
        "a b",
        "a~1",
        "a^",
        "a:b",
        "a?",
        "a*",
        "a[",
        "a\\b",
        "a@{1}",
        "@",
        "HEAD",
        "/a",
        "a/",
        "a//b",
        "a/.b",
        "a.lock",
        "a.",
        "refs/heads/main",
        "0123456789abcdef0123456789abcdef01234567",
        "a\u{7f}",
        "a\n",
    ] {
        assert!(bad.parse::<BranchName>().is_err(), "{bad:?}");
    }
}

#[test]
fn a_target_is_written_with_slashes() {
    let target: Target = "PlatformDeploy/headlamp/dev".parse().unwrap();
    assert_eq!(target.repo.as_str(), "PlatformDeploy");
    assert_eq!(target.path.as_ref().unwrap().as_str(), "headlamp");
    assert_eq!(target.stage.as_str(), "dev");
    assert_eq!(target.to_string(), "PlatformDeploy/headlamp/dev");
    let root: Target = "FieldnotesDeploy/prd".parse().unwrap();
    assert_eq!(root.path, None);
    for bad in ["", "a", "a/", "/a", "a//b", "a/../b", "a/b/C"] {
        assert!(bad.parse::<Target>().is_err(), "{bad}");
    }
}

#[test]
fn every_form_of_one_repository_is_the_same() {
    let first = url("https://github.com/Example/FieldnotesDeploy.git");
    for same in [
        "HTTPS://GITHUB.COM/example/fieldnotesdeploy.GIT",
        "https://github.com/example/FieldnotesDeploy/",
        "https://github.com//example/FieldnotesDeploy.git/",
        "https://github.com:443/example/FieldnotesDeploy",
        "http://github.com/example/FieldnotesDeploy",
        "ssh://git@github.com/example/FieldnotesDeploy",
        "ssh://org-123@github.com:22/example/FieldnotesDeploy.git",
        "ssh://git@ssh.github.com:443/example/FieldnotesDeploy.git",
        "git@github.com:example/FieldnotesDeploy.git",
        "git@github.com:/example/FieldnotesDeploy",
        "https://me@github.com/example/FieldnotesDeploy",
        "https://github.com/example/Fieldnotes%44eploy",
    ] {
        assert!(first.same_repository(&url(same)), "{same}");
        assert!(url(same).same_repository(&first), "{same}");
    }
    for other in [
        "https://github.com/example/FieldnotesDeploy2",
        "https://github.com/other/FieldnotesDeploy",
        "https://gitlab.com/example/FieldnotesDeploy",
        "/example/FieldnotesDeploy",
    ] {
        assert!(!first.same_repository(&url(other)), "{other}");
    }
    assert!(!url("http://127.0.0.1:8001/a").same_repository(&url("http://127.0.0.1:8002/a")));
    assert!(url("/srv/git/a.git").same_repository(&url("file:///srv/git/a")));
}

#[test]
fn a_repository_url_says_where_credentials_may_go() {
    assert_eq!(
        url("https://GitHub.com/a/b").host_scope().as_deref(),
        Some("https://github.com")
    );
    assert_eq!(
        url("http://127.0.0.1:8080/a").host_scope().as_deref(),
        Some("http://127.0.0.1:8080")
    );
    assert_eq!(
        url("https://[::1]:8080/a").host_scope().as_deref(),
        Some("https://[::1]:8080")
    );
    assert_eq!(url("git@github.com:a/b").host_scope(), None);
    assert_eq!(url("/srv/a").host_scope(), None);
}

#[test]
fn a_repository_is_joined_to_its_base() {
    let repo: RepoName = "TerraformState".parse().unwrap();
    for (base, joined) in [
        (
            "https://github.com/example",
            "https://github.com/example/TerraformState.git",
        ),
        (
            "https://github.com/example/",
            "https://github.com/example/TerraformState.git",
        ),
        (
            "git@github.com:example",
            "git@github.com:example/TerraformState.git",
        ),
        ("/srv/my git", "file:///srv/my%20git/TerraformState.git"),
    ] {
        let url = url(base).join(&repo);
        assert_eq!(url.as_str(), joined);
        assert_eq!(joined.parse(), Ok(url));
    }
}

#[test]
fn a_password_in_a_url_is_refused_and_not_shown() {
    for bad in [
        "https://me:s3cret@github.com/a/b",
        "https://ghp_s3cret@github.com/a/b",
        "ssh://me:s3cret@host/a",
        "me:s3cret@host/a/b",
        "ftp://me:s3cret@host/a",
        "https://me:s3cret@host/a b",
        "https://me:x/s3cret@host/a b",
        "https://me:s3cret/x@host/a",
        "me:s3cret@host::a",
    ] {
        let shown = error::<RepoUrl>(bad);
        assert!(!shown.contains("s3cret"), "{shown}");
    }
    assert_eq!(
        error::<RepoUrl>("https://me:s3cret@github.com/a/b"),
        "\"https://***@github.com/a/b\" is not a valid repository URL because of the password in it: take it out of the URL and hand the password over in the environment (GIT_USERNAME and GIT_PASSWORD, or GITHUB_TOKEN)"
    );
}

#[test]
fn a_url_that_git_could_misuse_is_refused() {
    for bad in [
        "",
        "a",
        "a/b",
        "./a",
        "-x",
        "--upload-pack=touch /tmp/x",
        "ext::sh -c true",
        "fd::3",
        "transport::https://host/a",
        "git://host/a",
        "ftp://host/a",
        "https://",
        "https:///a",
        "ssh://-oProxyCommand=x/a",
        "ssh://-x@host/a",
        "git@-oProxyCommand=x:a",
        "host:-a",
        "host:",
        "https://host/a\nb",
        "https://host/a%0ab",
        "https://host/a%2fb",
        "https://host/a%zz",
        "https://host/%c3",
        "https://host/../a",
        "https://host/%2e%2e/a",
        "https://host/a?b",
        "https://host/a#b",
        "https://host/a b",
        "https://host:99999/a",
        "https://ho st/a",
        "file://server/a",
        "/a/../b",
    ] {
        assert!(bad.parse::<RepoUrl>().is_err(), "{bad:?}");
    }
}

#[test]
fn names_are_read_and_written_as_text_by_serde() {
    let stage: StageName = serde_json::from_str("\"prd\"").unwrap();
    assert_eq!(serde_json::to_string(&stage).unwrap(), "\"prd\"");
    let target: Target = serde_json::from_str("\"A/b/c\"").unwrap();
    assert_eq!(serde_json::to_string(&target).unwrap(), "\"A/b/c\"");
    assert!(serde_json::from_str::<StageName>("\"P\"").is_err());
}

fn is_ref(name: &str) -> bool {
    Command::new("git")
        .args(["check-ref-format", name])
        .status()
        .unwrap()
        .success()
}

#[test]
fn git_itself_takes_what_becomes_part_of_a_ref() {
    // Made of the pieces at which git's rules and ours could differ; those that we take, git must take.
    let pieces = [
        "a", ".", "..", "/", ".lock", "-", "@", "{", "@{", "_", "~", "é", "HEAD",
    ];
    let mut taken = 0;
    for a in pieces {
        for b in pieces {
            for c in pieces {
                let text = format!("{a}{b}{c}");
                let mut refs = Vec::new();
                if text.parse::<StateKey>().is_ok() {
                    refs.push(format!("refs/heads/locks/{text}"));
                }
                if text.parse::<BranchName>().is_ok() {
                    refs.push(format!("refs/heads/{text}"));
                }
                if text.parse::<RepoName>().is_ok() || text.parse::<AppPath>().is_ok() {
                    refs.push(format!("refs/heads/locks/{text}/x"));
                }
                // One process for each name is slow; a quarter of them is sample enough.
                for name in refs.iter().filter(|name| name.len() % 4 == 0) {
                    taken += 1;
                    assert!(is_ref(name), "{name}");
                }
            }
        }
    }
    assert!(taken > 50, "{taken}");
}

fn stays_inside(text: &str) -> bool {
    let joined = Path::new("clone").join(text);
    joined.starts_with("clone")
        && joined
            .components()
            .all(|component| matches!(component, Component::Normal(_)))
}

/// Texts near the border between taken and refused, and any others.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9._/@:%~-]{0,40}",
        "(([a-z0-9]{1,4}|\\.|\\.\\.|\\.lock|-)(/|)){1,8}",
        "(https|ssh|file|http|ext)(://|::|:)[a-z@:./%0-9-]{0,20}",
        any::<String>(),
    ]
}

proptest! {
    #[test]
    fn whatever_is_taken_round_trips_and_stays_in_its_folder(text in any_text()) {
        macro_rules! check {
            ($($type:ident),*) => {$(
                if let Ok(name) = text.parse::<$type>() {
                    prop_assert_eq!(name.to_string(), text.clone());
                    prop_assert_eq!(name.to_string().parse::<$type>().unwrap(), name);
                    prop_assert!(text.split('/').all(|segment| segment != ".." && segment != "."));
                    prop_assert!(stays_inside(&text), "{}", text);
                    prop_assert!(!text.starts_with('-'));
                }
            )*};
        }
        check!(RepoName, OwnerName, AppName, AppPath, StageName, Namespace, BranchName, CommitSha, StateKey, Target);
    }

    #[test]
    fn a_url_round_trips_and_equals_itself(text in any_text()) {
        if let Ok(url) = text.parse::<RepoUrl>() {
            prop_assert_eq!(url.to_string().parse::<RepoUrl>().unwrap(), url.clone());
            prop_assert!(url.same_repository(&url));
            prop_assert!(!url.as_str().starts_with('-'));
            prop_assert!(!url.as_str().contains("::") || url.as_str().contains("://"));
        }
    }

    #[test]
    fn good_names_are_taken(
        segments in proptest::collection::vec("[A-Za-z0-9][A-Za-z0-9_-]{0,20}", 1..6),
        label in "[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?",
    ) {
        let path = segments.join("/");
        prop_assert!(path.parse::<AppPath>().is_ok());
        prop_assert!(path.parse::<StateKey>().is_ok());
        prop_assert!(label.parse::<StageName>().is_ok());
        prop_assert!(label.parse::<AppName>().is_ok());
        let target = format!("Repo/{path}/{label}");
        prop_assert_eq!(target.parse::<Target>().unwrap().to_string(), target);
    }
}

#[test]
fn a_repository_is_named_with_its_owner_where_it_has_one() {
    for (address, expected) in [
        (
            "https://github.com/example/PlatformDeploy.git",
            "example/PlatformDeploy",
        ),
        (
            "https://github.com/example/PlatformDeploy.GIT/",
            "example/PlatformDeploy",
        ),
        (
            "git@github.com:example/PlatformDeploy",
            "example/PlatformDeploy",
        ),
        (
            "ssh://git@git.example.org:2222/infra/team/Shops.git",
            "infra/team/Shops",
        ),
        ("file:///srv/git/PlatformDeploy.git", "PlatformDeploy"),
        ("/srv/git/PlatformDeploy.git", "PlatformDeploy"),
        ("https://github.com", ""),
    ] {
        assert_eq!(url(address).full_name(), expected, "{address}");
    }
}

#[test]
fn an_application_is_named_with_its_namespace() {
    for good in ["argocd/a", "argocd-prd/fieldnotes-prd", "n/a.b-c"] {
        assert_eq!(good.parse::<ApplicationName>().unwrap().as_str(), good);
    }
    for (bad, part) in [
        ("a", "its missing \"/\""),
        ("/a", "its namespace, being empty"),
        ("n/", "the name \"\""),
        ("n/a/b", "the name \"a/b\""),
        ("N/a", "its namespace, the character \"N\" at position 1"),
        ("n/A", "the name \"A\""),
    ] {
        let shown = error::<ApplicationName>(bad);
        assert!(shown.contains(&format!("because of {part}:")), "{shown}");
    }
}
