use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;
use std::thread;

use super::*;

/// An empty folder, and the path of a sandbox in it that is not there yet.
fn nowhere() -> (TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("sandbox");
    (parent, dir)
}

fn open(dir: &Path, reset: Reset) -> Sandbox {
    Sandbox::open(dir, reset).unwrap()
}

fn refusal(dir: &Path, reset: Reset) -> String {
    Sandbox::open(dir, reset).unwrap_err().to_string()
}

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Runs the real git without the machine's settings; gives what it said on both streams.
fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

/// Every branch of every repository with its commit.
fn heads(sandbox: &Sandbox) -> BTreeMap<String, String> {
    let folder = sandbox.root().join("git");
    names(&folder)
        .into_iter()
        .map(|repo| {
            let refs = git(
                &folder.join(&repo),
                &["for-each-ref", "--format=%(refname) %(objectname)"],
            );
            (repo, refs)
        })
        .collect()
}

#[test]
fn a_missing_folder_is_unpacked_into() {
    let (parent, dir) = nowhere();
    let sandbox = open(&dir, Reset::Keep);
    assert_eq!(sandbox.root(), dir);
    assert_eq!(sandbox.settings_file(), dir.join("stagewright.yaml"));
    assert_eq!(
        names(&dir),
        [
            ".stagewright-sandbox",
            "applications.yaml",
            "credentials",
            "git",
            "jenkins",
            "stagewright.yaml"
        ]
    );
    assert_eq!(
        names(&dir.join("git")),
        [
            "Architecture.git",
            "ArgoCDDeploy.git",
            "FieldnotesDeploy.git",
            "PlatformDeploy.git",
            "TerraformState.git",
            "WikiDeploy.git"
        ]
    );
    assert_eq!(names(parent.path()), ["sandbox"]);
}

#[test]
fn missing_parents_are_made() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("not/yet/there");
    assert!(open(&dir, Reset::Fresh).settings_file().is_file());
}

#[test]
fn an_empty_folder_is_unpacked_into() {
    let (parent, dir) = nowhere();
    fs::create_dir(&dir).unwrap();
    assert!(open(&dir, Reset::Keep).settings_file().is_file());
    assert_eq!(names(parent.path()), ["sandbox"]);
}

#[test]
fn a_relative_path_gives_an_absolute_root() {
    let error = Sandbox::open(Path::new("src"), Reset::Keep).unwrap_err();
    assert!(matches!(error, SandboxError::Foreign { path, .. } if path.is_absolute()));
}

#[test]
fn a_second_run_goes_on_with_what_the_first_one_left() {
    let (_parent, dir) = nowhere();
    open(&dir, Reset::Keep);
    fs::write(dir.join("applications.yaml"), "edited").unwrap();
    fs::write(dir.join("mine.txt"), "mine").unwrap();
    open(&dir, Reset::Keep);
    assert_eq!(
        fs::read_to_string(dir.join("applications.yaml")).unwrap(),
        "edited"
    );
    assert!(dir.join("mine.txt").exists());
}

#[test]
fn a_reset_drops_what_was_done_and_leaves_nothing_beside_the_sandbox() {
    let (parent, dir) = nowhere();
    open(&dir, Reset::Keep);
    let before = heads(&open(&dir, Reset::Keep));
    git(
        &dir.join("git/TerraformState.git"),
        &[
            "branch",
            "locks/argocd/FieldnotesDeploy/dev/terraform.tfstate",
        ],
    );
    fs::write(dir.join("mine.txt"), "mine").unwrap();
    let sandbox = open(&dir, Reset::Fresh);
    assert_eq!(heads(&sandbox), before);
    assert!(!dir.join("mine.txt").exists());
    assert_eq!(names(parent.path()), ["sandbox"]);
}

#[test]
fn a_reset_does_not_follow_links_out_of_the_sandbox() {
    let (parent, dir) = nowhere();
    open(&dir, Reset::Keep);
    let elsewhere = parent.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("precious.txt"), "precious").unwrap();
    symlink(&elsewhere, dir.join("link")).unwrap();
    open(&dir, Reset::Fresh);
    assert_eq!(names(&elsewhere), ["precious.txt"]);
}

#[test]
fn a_folder_with_other_files_is_refused_and_left_alone() {
    let (parent, dir) = nowhere();
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("thesis.txt"), "three years of work").unwrap();
    for reset in [Reset::Keep, Reset::Fresh] {
        assert_eq!(
            refusal(&dir, reset),
            format!(
                "{} is not a sandbox: it holds thesis.txt and no .stagewright-sandbox, so nothing in it was touched; \
                 name a folder that is empty or does not exist",
                dir.display()
            )
        );
    }
    assert_eq!(names(&dir), ["thesis.txt"]);
    assert_eq!(
        fs::read_to_string(dir.join("thesis.txt")).unwrap(),
        "three years of work"
    );
    assert_eq!(names(parent.path()), ["sandbox"]);
}

#[test]
fn a_file_is_refused_and_left_alone() {
    let (_parent, dir) = nowhere();
    fs::write(&dir, "a file").unwrap();
    for reset in [Reset::Keep, Reset::Fresh] {
        assert_eq!(
            refusal(&dir, reset),
            format!(
                "the sandbox cannot be unpacked into {}: it is not a folder; name one that is empty or does not exist",
                dir.display()
            )
        );
    }
    assert_eq!(fs::read_to_string(&dir).unwrap(), "a file");
}

#[test]
fn a_symbolic_link_is_refused_even_to_a_sandbox_and_with_a_trailing_slash() {
    let (parent, dir) = nowhere();
    open(&dir, Reset::Keep);
    fs::write(dir.join("mine.txt"), "mine").unwrap();
    let link = parent.path().join("link");
    symlink(&dir, &link).unwrap();
    for given in [link.clone(), link.join(""), link.join(".")] {
        assert_eq!(
            refusal(&given, Reset::Fresh),
            format!(
                "the sandbox cannot be unpacked into {}: it is a symbolic link; name the folder that it leads to",
                link.display()
            )
        );
    }
    assert!(dir.join("mine.txt").exists());
}

#[test]
fn a_dangling_link_is_refused() {
    let (parent, dir) = nowhere();
    symlink(parent.path().join("gone"), &dir).unwrap();
    assert!(matches!(
        Sandbox::open(&dir, Reset::Keep),
        Err(SandboxError::SymbolicLink { .. })
    ));
    assert_eq!(names(parent.path()), ["sandbox"]);
}

#[test]
fn a_marker_that_holds_no_version_makes_no_sandbox() {
    for foreign in [
        "",
        "one",
        "1 2",
        "-1",
        "a long text that somebody has written",
    ] {
        let (_parent, dir) = nowhere();
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join(".stagewright-sandbox"), foreign).unwrap();
        for reset in [Reset::Keep, Reset::Fresh] {
            assert_eq!(
                refusal(&dir, reset),
                format!(
                    "{} is not a sandbox: its .stagewright-sandbox does not hold a format version, so nothing in it \
                     was touched; name a folder that is empty or does not exist",
                    dir.display()
                )
            );
        }
        assert_eq!(
            fs::read_to_string(dir.join(".stagewright-sandbox")).unwrap(),
            foreign
        );
    }
}

#[test]
fn a_marker_that_is_a_folder_or_a_link_makes_no_sandbox() {
    let (parent, dir) = nowhere();
    fs::create_dir_all(dir.join(".stagewright-sandbox")).unwrap();
    assert!(matches!(
        Sandbox::open(&dir, Reset::Fresh),
        Err(SandboxError::ForeignMarker { .. })
    ));

    let linked = parent.path().join("linked");
    fs::create_dir(&linked).unwrap();
    fs::write(parent.path().join("marker"), "1\n").unwrap();
    symlink(
        parent.path().join("marker"),
        linked.join(".stagewright-sandbox"),
    )
    .unwrap();
    assert!(matches!(
        Sandbox::open(&linked, Reset::Fresh),
        Err(SandboxError::ForeignMarker { .. })
    ));
}

#[test]
fn a_sandbox_of_another_format_is_refused_until_it_is_reset() {
    let (_parent, dir) = nowhere();
    open(&dir, Reset::Keep);
    fs::write(dir.join(".stagewright-sandbox"), "7\n").unwrap();
    assert_eq!(
        refusal(&dir, Reset::Keep),
        format!(
            "the sandbox {} has format 7 and this program works with format 4: run it with --sandbox-reset to unpack \
             it again, which drops what was done in it",
            dir.display()
        )
    );
    open(&dir, Reset::Fresh);
    assert_eq!(
        fs::read_to_string(dir.join(".stagewright-sandbox")).unwrap(),
        "4\n"
    );
}

#[test]
fn a_path_without_a_name_of_its_own_is_not_unpacked_into() {
    let (_parent, dir) = nowhere();
    open(&dir, Reset::Keep);
    let given = dir.join("git/..");
    assert!(open(&given, Reset::Keep).settings_file().is_file());
    assert_eq!(
        refusal(&given, Reset::Fresh),
        format!(
            "the sandbox cannot be unpacked into {}: it has no name of its own; name a folder",
            given.display()
        )
    );
}

#[test]
fn the_folder_that_a_program_works_in_is_not_replaced() {
    let (_parent, dir) = nowhere();
    fs::create_dir(&dir).unwrap();
    let sandbox = Sandbox { root: dir.clone() };
    assert!(sandbox.refuse_working_folder(Path::new("/")).is_ok());
    for working_folder in [dir.clone(), dir.join("git")] {
        assert_eq!(
            sandbox
                .refuse_working_folder(&working_folder)
                .unwrap_err()
                .to_string(),
            format!(
                "the sandbox cannot be unpacked into {}: the program was started in it; start it elsewhere, or name \
                 another folder",
                dir.display()
            )
        );
    }
}

#[test]
fn what_cannot_be_written_is_named_with_its_cause() {
    let (parent, _) = nowhere();
    fs::write(parent.path().join("file"), "").unwrap();
    let dir = parent.path().join("file/sandbox");
    let error = Sandbox::open(&dir, Reset::Keep).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("the sandbox {0} could not be read, at {0}", dir.display())
    );
    assert!(
        matches!(error, SandboxError::Io { source, .. } if source.kind() == io::ErrorKind::NotADirectory)
    );
}

#[test]
fn two_runs_at_once_share_the_one_sandbox() {
    let (parent, dir) = nowhere();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| open(&dir, Reset::Keep));
        }
    });
    assert_eq!(names(parent.path()), ["sandbox"]);
}

#[test]
fn credentials_are_for_the_owner_alone() {
    let (_parent, dir) = nowhere();
    open(&dir, Reset::Keep);
    let mode = |path: &str| fs::metadata(dir.join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("credentials"), 0o700);
    assert_eq!(mode("credentials/sandbox.agekey"), 0o600);
}

#[test]
fn git_finds_nothing_wrong_with_the_repositories() {
    let (_parent, dir) = nowhere();
    open(&dir, Reset::Keep);
    for repo in names(&dir.join("git")) {
        let repo = dir.join("git").join(repo);
        assert_eq!(git(&repo, &["fsck", "--strict", "--no-progress"]), "");
        assert_eq!(git(&repo, &["symbolic-ref", "HEAD"]), "refs/heads/main\n");
        assert_eq!(
            git(
                &repo,
                &["config", "--local", "--type=bool", "uploadpack.allowFilter"]
            ),
            "true\n"
        );
        assert_eq!(
            git(
                &repo,
                &[
                    "config",
                    "--local",
                    "--type=bool",
                    "uploadpack.allowAnySHA1InWant"
                ]
            ),
            "true\n"
        );
    }
}

#[test]
fn commits_are_the_same_on_every_machine() {
    let (_parent, dir) = nowhere();
    let sandbox = open(&dir, Reset::Keep);
    let other = nowhere();
    assert_eq!(heads(&sandbox), heads(&open(&other.1, Reset::Keep)));
    // Changes with every change to these fixtures, which are the ones that change least.
    assert_eq!(
        heads(&sandbox)["Architecture.git"],
        "refs/heads/main d8179b896d6f9adc3e5e316af1c4edafd3e6a77d\n"
    );
    assert_eq!(
        git(
            &dir.join("git/FieldnotesDeploy.git"),
            &["log", "--format=%an <%ae> %aI %cI %s", "next"]
        ),
        "Example Operator <operator@example.com> 2026-01-16T09:00:00+00:00 2026-01-16T09:00:00+00:00 What is on next \
         alone\n\
         Example Operator <operator@example.com> 2026-01-15T09:00:00+00:00 2026-01-15T09:00:00+00:00 The example \
         estate\n"
    );
}

#[test]
fn another_branch_is_main_with_its_own_files_laid_over_it() {
    let (_parent, dir) = nowhere();
    open(&dir, Reset::Keep);
    assert_eq!(
        git(
            &dir.join("git/FieldnotesDeploy.git"),
            &["diff", "--name-status", "main", "next"]
        ),
        "M\tchart/Chart.yaml\nM\tconfig/dev/notebooks.tfvars\nM\tconfig/dev/values.yaml\n"
    );
}

#[test]
fn the_repositories_hold_the_estate_byte_for_byte() {
    let (_parent, dir) = nowhere();
    open(&dir, Reset::Keep);
    let key = "argocd/PlatformDeploy/headlamp/prd/terraform.tfstate";
    assert_eq!(
        git(
            &dir.join("git/TerraformState.git"),
            &["show", &format!("main:{key}")]
        ),
        fs::read_to_string(format!("fixtures/estate/TerraformState/main/{key}")).unwrap()
    );
}

#[test]
fn a_repository_serves_a_partial_clone() {
    let (parent, dir) = nowhere();
    open(&dir, Reset::Keep);
    let url = format!("file://{}/git/TerraformState.git", dir.display());
    let said = git(
        parent.path(),
        &[
            "clone",
            "--quiet",
            "--filter=tree:0",
            "--no-checkout",
            &url,
            "partial",
        ],
    );
    assert_eq!(said, "");
    let missing = git(
        &parent.path().join("partial"),
        &["rev-list", "--objects", "--missing=print", "main"],
    );
    assert_eq!(
        missing.lines().filter(|line| line.starts_with('?')).count(),
        1
    );
}

#[test]
fn the_files_beside_the_repositories_are_embedded_as_they_are() {
    let (_parent, dir) = nowhere();
    open(&dir, Reset::Keep);
    for file in [
        "stagewright.yaml",
        "applications.yaml",
        "credentials/sandbox.agekey",
        "jenkins/jobs/AaC/jobs/Weather Stations/api.json",
    ] {
        assert_eq!(
            fs::read(dir.join(file)).unwrap(),
            fs::read(Path::new("fixtures/estate").join(file)).unwrap(),
            "{file}"
        );
    }
}
