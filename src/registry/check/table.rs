//! The named checks, in the order in which they are run.

use crate::findings::{Check, Group, Severity};

/// The file is YAML that Helm and this program read alike.
pub static YAML: Check = Check {
    name: "yaml",
    group: Group::File,
    severity: Severity::Error,
    explanation: "The file is YAML that Helm's parser and one of YAML 1.2 read alike: UTF-8, one document, no key twice in one mapping, no tags \
        or directives, merge keys above the keys they share.",
};
/// The file has apps.
pub static SHAPE: Check = Check {
    name: "shape",
    group: Group::File,
    severity: Severity::Error,
    explanation: "The file has `apps:` with one key for each app. A registry without an app is an error: nothing would be checked, and Argo CD \
        would be asked to prune everything.",
};
/// Each entry has what it needs, and nothing else.
pub static ENTRY: Check = Check {
    name: "entry",
    group: Group::File,
    severity: Severity::Error,
    explanation: "An entry has `repo` (a URL) and `stages` (a mapping with at least one stage), and may have `path` (plain segments), `upstream` \
        (`repo` and `chart`) and `syncOptions` (each `Name=value`); a stage may have `autoSync`, `targetRevision`, and `version` exactly where the app has \
        `upstream`. Another key is likely a slip. Names become names in Kubernetes, so they are DNS labels; a name that YAML 1.1 reads as a \
        number, a truth value or a date needs quotes.",
};
/// A stage says that there is nothing to say of it.
pub static NULL_STAGE: Check = Check {
    name: "null-stage",
    group: Group::File,
    severity: Severity::Warning,
    explanation: "A stage without settings is written `{}`. Helm takes a key that holds nothing for one to leave out: the stage is there \
        while the file is the chart's own `values.yaml`, and gone, to be pruned, where the file is given by `--values` or by an Application's \
        `valueFiles`; and `helm lint` never looks at it.",
};
/// The apps are in order.
pub static ORDER: Check = Check {
    name: "order",
    group: Group::File,
    severity: Severity::Warning,
    explanation: "The apps stand in alphabetical order, so that an entry is found, and two people who add one meet in the same place.",
};
/// A path ends as the app is called.
pub static PATH_NAME: Check = Check {
    name: "path-name",
    group: Group::File,
    severity: Severity::Warning,
    explanation: "The last segment of an app's `path` is the app's key: who reads a state key or a folder then knows the app.",
};
/// No two entries deploy the same stage.
pub static SAME_STAGE: Check = Check {
    name: "same-stage",
    group: Group::File,
    severity: Severity::Error,
    explanation: "No two entries deploy the same stage of the same path of the same repository: they would share one Terraform state.",
};
/// No app's path goes through another app's stage.
pub static PATH_THROUGH_STAGE: Check = Check {
    name: "path-through-stage",
    group: Group::File,
    severity: Severity::Error,
    explanation: "No app lies at the path that another app's stage has in the state repository: `a` with the stage `b`, and an app at `a/b`, \
        meet in the folder `a/b/`, and the stage could not be retired.",
};
/// Names fit where they go.
pub static LONG_NAME: Check = Check {
    name: "long-name",
    group: Group::File,
    severity: Severity::Error,
    explanation: "`<app>-<stage>` is a namespace, which has at most 63 characters.",
};
/// Two entries name the same objects.
pub static SAME_NAME: Check = Check {
    name: "same-name",
    group: Group::File,
    severity: Severity::Error,
    explanation: "No two stages have the same `<app>-<stage>`: `a-b` with `c`, and `a` with `b-c`, would be one Application and one namespace.",
};
/// A repository is written in one way.
pub static REPO_URL: Check = Check {
    name: "repo-url",
    group: Group::File,
    severity: Severity::Warning,
    explanation: "A repository's URL is written in one way everywhere: https, the host in small letters, `.git` at the end and no `/` behind it, \
        and the same spelling in each entry. Argo CD compares loosely; the state repository's paths do not.",
};
/// A revision that is tracked.
pub static TARGET_REVISION: Check = Check {
    name: "target-revision",
    group: Group::File,
    severity: Severity::Warning,
    explanation: "`targetRevision` names a branch. A commit or a tag does not move, so no push reaches the stage; `HEAD` hides which branch is \
        tracked; a full ref (`refs/heads/…`) and a pattern (`v1.*`) are read by Argo CD alone; and no branch can be called by some texts, such as \
        `main/`.",
};

/// Each stage has its Application, set to what the entry says.
pub static APPLICATION: Check = Check {
    name: "application",
    group: Group::Applications,
    severity: Severity::Error,
    explanation: "Each stage has the live Application that its entry promises, field by field: project, destination, sources with revision \
        and value files, Helm parameters of the hook and no others, the annotation of the paths it is rendered from, automated sync and \
        retry, sync options. Project, destination and retry are compared where `applications.expected` in the settings names them. What \
        else an Application may have (labels, finalizers, ignored differences) is not looked at. A difference is somebody's change by hand, \
        or a sync of the registry that is still to come.",
};
/// The registry knows each Application.
pub static UNKNOWN_APPLICATION: Check = Check {
    name: "unknown-application",
    group: Group::Applications,
    severity: Severity::Warning,
    explanation: "No Application deploys from a repository of the registry, or is in its project, without an entry that promises it: it was \
        made by hand, or its entry was deleted and it was left.",
};
/// Nothing waits for pruning.
pub static PRUNING: Check = Check {
    name: "pruning",
    group: Group::Applications,
    severity: Severity::Warning,
    explanation: "No Application that the registry's own one made waits to be pruned: its stage has no entry any more, and goes on running \
        until that Application is synced with Prune. Known where `applications.expected.parent` in the settings names the registry's own \
        Application.",
};
/// What a stage runs is what its branch has.
pub static READINESS: Check = Check {
    name: "readiness",
    group: Group::Applications,
    severity: Severity::Warning,
    explanation: "Each stage is ready at the current revision: synced to the head of its branch, or to a commit since which nothing in the \
        paths that it is rendered from has changed; compared with what it is set to now; healthy; without an error of comparison or sync, \
        and without a sync that runs, failed or came before its Terraform changed. An Application that still says Synced and Healthy from \
        before a push is not ready: Argo CD has no observed generation.",
};

/// All of them.
pub static CHECKS: [&Check; 16] = [
    &YAML,
    &SHAPE,
    &ENTRY,
    &NULL_STAGE,
    &ORDER,
    &PATH_NAME,
    &SAME_STAGE,
    &PATH_THROUGH_STAGE,
    &LONG_NAME,
    &SAME_NAME,
    &REPO_URL,
    &TARGET_REVISION,
    &APPLICATION,
    &UNKNOWN_APPLICATION,
    &PRUNING,
    &READINESS,
];
