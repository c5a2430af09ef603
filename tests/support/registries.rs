//! Registries with one fault each, and who finds it. The README's table of who finds what has a row for each.

/// A fault and a registry that has it.
pub struct Faulty {
    /// The fault, as the README calls it.
    pub fault: &'static str,
    /// A registry with it.
    pub text: &'static str,
    /// Whether `helm lint` refuses it, in a chart without a `values.schema.json`.
    pub helm: bool,
    /// Whether an editor does: by the schema, or since its reader of YAML 1.2 refuses it.
    pub schema: bool,
    /// The check that finds it.
    pub check: &'static str,
}

const fn faulty(
    fault: &'static str,
    [helm, schema]: [bool; 2],
    check: &'static str,
    text: &'static str,
) -> Faulty {
    Faulty {
        fault,
        text,
        helm,
        schema,
        check,
    }
}

const YES: bool = true;
const NO: bool = false;

/// The faults.
pub const FAULTY: &[Faulty] = &[
    faulty(
        "text that is no YAML",
        [YES, YES],
        "yaml",
        "apps:\n  blog:\n    repo: https://h/o/Blog.git\n   stages: {prd: {}}\n",
    ),
    faulty(
        "an alias whose anchor is gone",
        [YES, YES],
        "yaml",
        "apps:\n  blog:\n    repo: https://h/o/Blog.git\n    stages: *gone\n",
    ),
    faulty(
        "a key that is there twice",
        [NO, YES],
        "yaml",
        "apps:\n  blog: {repo: https://h/o/Blog.git, stages: {prd: {}}}\n  blog: {repo: https://h/o/Grid.git, stages: {prd: {}}}\n",
    ),
    faulty(
        "a second document",
        [NO, NO],
        "yaml",
        "apps: {blog: {repo: https://h/o/Blog.git, stages: {prd: {}}}}\n---\napps: {grid: {repo: https://h/o/Grid.git, stages: {prd: {}}}}\n",
    ),
    faulty(
        "a merge below a key that it sets too",
        [NO, NO],
        "yaml",
        "base: &base {repo: https://h/o/Base.git}\napps:\n  blog:\n    repo: https://h/o/Blog.git\n    <<: *base\n    stages: {prd: {}}\n",
    ),
    faulty("no `apps`, or none in it", [NO, YES], "shape", "apps: {}\n"),
    faulty(
        "a name that YAML 1.1 reads as something else: `no`, `1e3`",
        [NO, NO],
        "entry",
        "apps:\n  blog:\n    repo: https://h/o/Blog.git\n    stages: {no: {}}\n",
    ),
    faulty(
        "a `targetRevision` that is a number: `1.10`",
        [NO, YES],
        "entry",
        "apps:\n  blog:\n    repo: https://h/o/Blog.git\n    stages: {prd: {targetRevision: 1.10}}\n",
    ),
    faulty(
        "a name that is no DNS label",
        [NO, YES],
        "entry",
        "apps:\n  Blog_1:\n    repo: https://h/o/Blog.git\n    stages: {prd: {}}\n",
    ),
    faulty(
        "an unknown key",
        [NO, YES],
        "entry",
        "apps:\n  blog:\n    repo: https://h/o/Blog.git\n    stages: {prd: {targetRevison: next}}\n",
    ),
    faulty(
        "`repo` or `stages` missing",
        [NO, YES],
        "entry",
        "apps:\n  blog:\n    repo: https://h/o/Blog.git\n    Stages: {prd: {}}\n",
    ),
    faulty(
        "a list of stages",
        [NO, YES],
        "entry",
        "apps:\n  blog:\n    repo: https://h/o/Blog.git\n    stages: [{}]\n",
    ),
    faulty(
        "`version` without `upstream`, or the reverse",
        [NO, YES],
        "entry",
        "apps:\n  blog:\n    repo: https://h/o/Blog.git\n    stages: {prd: {version: '1'}}\n",
    ),
    faulty(
        "a path that leaves the repository",
        [NO, YES],
        "entry",
        "apps:\n  blog:\n    repo: https://h/o/Blog.git\n    path: ../blog\n    stages: {prd: {}}\n",
    ),
    faulty(
        "a password in `repo`",
        [NO, YES],
        "entry",
        "apps:\n  blog:\n    repo: https://me:secret@h/o/Blog.git\n    stages: {prd: {}}\n",
    ),
    faulty(
        "`autoSync` in quotes",
        [YES, YES],
        "entry",
        "apps:\n  blog:\n    repo: https://h/o/Blog.git\n    stages: {prd: {autoSync: 'false'}}\n",
    ),
    faulty(
        "a sync option without a value",
        [NO, YES],
        "entry",
        "apps:\n  blog:\n    repo: https://h/o/Blog.git\n    syncOptions: [ServerSideApply]\n    stages: {prd: {}}\n",
    ),
    faulty(
        "a stage whose key holds nothing",
        [NO, NO],
        "null-stage",
        "apps:\n  blog:\n    repo: https://h/o/Blog.git\n    stages:\n      dev:\n      prd: {}\n",
    ),
    faulty(
        "apps out of order",
        [NO, NO],
        "order",
        "apps:\n  grid: {repo: https://h/o/Grid.git, stages: {prd: {}}}\n  blog: {repo: https://h/o/Blog.git, stages: {prd: {}}}\n",
    ),
    faulty(
        "a path that does not end as its app is called",
        [NO, NO],
        "path-name",
        "apps:\n  blog: {repo: https://h/o/Mono.git, path: weblog, stages: {prd: {}}}\n",
    ),
    faulty(
        "two entries that deploy the same stage",
        [NO, NO],
        "same-stage",
        "apps:\n  blog: {repo: https://h/o/Blog.git, stages: {prd: {}}}\n  blog2: {repo: https://h/o/Blog.git, stages: {prd: {}}}\n",
    ),
    faulty(
        "an app in the folder of another app's stage",
        [NO, NO],
        "path-through-stage",
        "apps:\n  a: {repo: https://h/o/Mono.git, path: a, stages: {b: {}}}\n  b: {repo: https://h/o/Mono.git, path: a/b, stages: {prd: {}}}\n",
    ),
    faulty(
        "a namespace of more than 63 characters",
        [NO, NO],
        "long-name",
        "apps:\n  a123456789b123456789c123456789d123456789e123456789f123456789:\n    repo: https://h/o/Blog.git\n    stages: {prod: {}}\n",
    ),
    faulty(
        "two stages that would be one Application",
        [NO, NO],
        "same-name",
        "apps:\n  a: {repo: https://h/o/A.git, stages: {b-c: {}}}\n  a-b: {repo: https://h/o/Ab.git, stages: {c: {}}}\n",
    ),
    faulty(
        "a repository in an unusual or in two spellings",
        [NO, NO],
        "repo-url",
        "apps:\n  blog: {repo: https://h/o/Blog, stages: {prd: {}}}\n",
    ),
    faulty(
        "a `targetRevision` that does not move",
        [NO, NO],
        "target-revision",
        "apps:\n  blog: {repo: https://h/o/Blog.git, stages: {prd: {targetRevision: HEAD}}}\n",
    ),
];

/// The registries of the golden cases, by the cases' names.
pub fn golden() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/registry-check");
    let mut found: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|case| {
            let case = case.unwrap();
            let name = case.file_name().into_string().unwrap();
            let text = std::fs::read_to_string(case.path().join("work/values.yaml")).ok()?;
            Some((name, text))
        })
        .collect();
    found.sort();
    found
}
