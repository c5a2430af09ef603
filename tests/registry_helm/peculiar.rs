//! Registries in YAML that parsers have read differently, by public reports and by trying.

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// We read it, so Helm must make the same of it.
    Read,
    /// We refuse it: Helm does so too, or reads something else than a reader of YAML 1.2.
    Refused,
}

use Reading::{Read, Refused};

/// The registries.
pub const CASES: &[(&str, Reading)] = &[
    // The entry that carried the anchor was removed.
    (
        "apps:\n  b:\n    repo: https://h/o/B.git\n    stages: *s\n",
        Refused,
    ),
    (
        "apps:\n  a:\n    repo: https://h/o/A.git\n    stages: &s {prd: {}}\n  b:\n    repo: https://h/o/B.git\n    stages: *s\n",
        Read,
    ),
    // Merges: own keys below win, the first of several wins, stages are replaced and not joined.
    (
        "x: &x {repo: https://h/o/X.git, path: x, stages: {dev: {}}}\napps:\n  a:\n    <<: *x\n    path: a\n    stages: {prd: {}}\n  b: {<<: *x}\n",
        Read,
    ),
    (
        "x: &x {repo: https://h/o/X.git, path: x}\ny: &y {repo: https://h/o/Y.git, syncOptions: [A=b]}\napps:\n  a:\n    <<: [*x, *y]\n    stages: {prd: {}}\n",
        Read,
    ),
    (
        "x: &x {repo: https://h/o/X.git}\ny: &y {<<: *x, path: yy}\napps:\n  a: {<<: *y, stages: {prd: {}}}\n",
        Read,
    ),
    (
        "x: &x {dev: {targetRevision: next}, prd: {autoSync: false}}\napps:\n  a:\n    repo: https://h/o/A.git\n    stages: {<<: *x, prd: {}}\n",
        Read,
    ),
    (
        "x: &x\n  a: {repo: https://h/o/A.git, stages: {prd: {}}}\napps:\n  <<: *x\n  b: {repo: https://h/o/B.git, stages: {prd: {}}}\n",
        Read,
    ),
    (
        "apps:\n  a:\n    <<: {repo: https://h/o/A.git}\n    stages: {prd: {}}\n",
        Read,
    ),
    (
        "x: &x {path: x}\napps:\n  a:\n    repo: https://h/o/A.git\n    path: a\n    <<: *x\n    stages: {prd: {}}\n",
        Refused,
    ),
    (
        "x: &x {repo: https://h/o/X.git}\nl: &l [*x]\napps:\n  a: {<<: *l, stages: {prd: {}}}\n",
        Refused,
    ),
    (
        "apps:\n  a:\n    repo: https://h/o/A.git\n    \"<<\": {path: a}\n    stages: {prd: {}}\n",
        Refused,
    ),
    // Names that YAML 1.1 reads otherwise, plain and quoted.
    (
        "apps:\n  a:\n    repo: https://h/o/A.git\n    stages: {on: {}, off: {}}\n",
        Refused,
    ),
    (
        "apps:\n  a:\n    repo: https://h/o/A.git\n    stages: {\"on\": {}, 'off': {}, \"no\": {}, \"y\": {}}\n",
        Read,
    ),
    (
        "apps:\n  1e3: {repo: https://h/o/A.git, stages: {prd: {}}}\n",
        Refused,
    ),
    (
        "apps:\n  12345678: {repo: https://h/o/A.git, stages: {prd: {}}}\n",
        Refused,
    ),
    (
        "apps:\n  0123: {repo: https://h/o/A.git, stages: {prd: {}}}\n",
        Refused,
    ),
    (
        "apps:\n  ~: {repo: https://h/o/A.git, stages: {prd: {}}}\n",
        Refused,
    ),
    (
        "apps:\n  '0123': {repo: https://h/o/A.git, stages: {prd: {}}}\n  '12345678': {repo: https://h/o/C.git, stages: {prd: {}}}\n  \"1e3\": {repo: https://h/o/B.git, stages: {\"0x1f\": {}}}\n  \"null\": {repo: https://h/o/N.git, stages: {prd: {}}}\n",
        Read,
    ),
    (
        "apps:\n  a: {repo: https://h/o/A.git, stages: {prd: {targetRevision: '1.10'}, tst: {targetRevision: !!str 2024-01-01}}}\n",
        Read,
    ),
    (
        "apps:\n  a: {repo: https://h/o/A.git, stages: {prd: {targetRevision: 2024-01-01}}}\n",
        Refused,
    ),
    // Documents.
    (
        "x: 1\n---\napps:\n  a: {repo: https://h/o/A.git, stages: {prd: {}}}\n",
        Refused,
    ),
    (
        "---\napps:\n  a: {repo: https://h/o/A.git, stages: {prd: {}}}\n...\n",
        Read,
    ),
    (
        "\u{feff}apps:\r\n  a: {repo: https://h/o/A.git, stages: {prd: {}}}\r\n",
        Read,
    ),
    // An anchor named twice means the latest.
    (
        "apps:\n  a: {repo: https://h/o/A.git, stages: &s {prd: {}}}\n  b: {repo: https://h/o/B.git, stages: *s}\n  c: {repo: https://h/o/C.git, stages: &s {tst: {}}}\n  d: {repo: https://h/o/D.git, stages: *s}\n",
        Read,
    ),
    // Parts that are missing or of another shape.
    ("x: {}\n", Refused),
    ("apps: []\n", Refused),
    ("apps:\n", Refused),
    (
        "apps:\n  a: {repo: https://h/o/A.git, stages: [prd]}\n",
        Refused,
    ),
    (
        "apps:\n  a: {repo: https://h/o/A.git, stages: [{prd: {}}]}\n",
        Refused,
    ),
    (
        "apps:\n  a:\n    repo: https://h/o/A.git\n    stages:\n      dev:\n      prd: {}\n",
        Read,
    ),
    (
        "apps:\n  a: {repo: https://h/o/A.git, stages: {dev, prd}}\n",
        Read,
    ),
    (
        "apps:\n  a: {repo: https://h/o/A.git, stages: {prd: {autoSync: }}}\n",
        Refused,
    ),
    (
        "apps:\n  a: {repo: https://h/o/A.git, path: , stages: {prd: {}}}\n",
        Refused,
    ),
    // Beside the apps.
    (
        "x: .inf\napps:\n  a: {repo: https://h/o/A.git, stages: {prd: {}}}\n",
        Refused,
    ),
    (
        "x: {~: 1}\napps:\n  a: {repo: https://h/o/A.git, stages: {prd: {}}}\n",
        Refused,
    ),
    (
        "x: &a.b 1\napps:\n  a: {repo: https://h/o/A.git, stages: {prd: {}}}\n",
        Refused,
    ),
    (
        "x: {a\n  : b}\napps:\n  a: {repo: https://h/o/A.git, stages: {prd: {}}}\n",
        Refused,
    ),
    (
        "x: {a: :8080}\napps:\n  a: {repo: https://h/o/A.git, stages: {prd: {}}}\n",
        Refused,
    ),
    (
        "x: :8080\ny: {1.5: 2024-01-01, 1: 1e400, true: ~}\napps:\n  a: {repo: https://h/o/A.git, stages: {prd: {}}}\n",
        Read,
    ),
    // How it is written.
    (
        "apps:\n  a:\n    repo: >-\n      https://h/o/A.git\n    stages:\n      ? prd\n      : {\"targetRevision\":\"a\\x2fb\"}\n",
        Read,
    ),
    (
        "apps:\n  a: {repo: https://h/o/A.git, stages: {prd: {targetRevision: \"a\\/b\"}}}\n",
        Refused,
    ),
    (
        "apps:\n  a: {repo: https://h/o/A.git, stages: {prd: {targetRevision: |a}}}\n",
        Refused,
    ),
    (
        "apps:\n  a: {repo: https://h/o/A.git, stages: {\n\n    prd: {targetRevision: 'it''s', },\n  },}\n",
        Read,
    ),
    (
        "apps:\n  a:\n    repo: https://h/o/A.git\n\t\n    stages: {prd: {}}\n",
        Refused,
    ),
    (
        "apps:\n  a:\n    repo: https://h/o/A.git\t# c\n    stages:\t{prd: {}}\t\n",
        Read,
    ),
    (
        "apps:\n  a:\n    repo: https://h/o/A.git\n    syncOptions:\n    -\tA=b\n    stages: {prd: {}}\n",
        Refused,
    ),
    (
        "n: &n a\napps:\n  *n : {repo: https://h/o/A.git, stages: {prd: {}}}\n",
        Read,
    ),
];
