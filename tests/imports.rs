//! Imports point down only: each room may use those of its own level and of the levels below it.
#![expect(
    clippy::unwrap_used,
    reason = "a source file that cannot be read fails the test"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The rooms by level, lowest first. A room may use its own level and those before it.
const LEVELS: &[&[&str]] = &[
    &["names", "yaml", "stop"],
    &["findings"],
    &["report"],
    &[
        "layout",
        "registry",
        "producers",
        "applications",
        "protect",
        "settings",
    ],
    &["guard"],
    &["child", "scratch", "web"],
    &["git", "terraform", "sandbox"],
    &["page"],
    &[
        "transport",
        "state_backend",
        "forge",
        "jenkins",
        "cluster",
        "preview",
    ],
    &["estate"],
    &["presync"],
    &["local"],
    &["runner"],
    &[
        "plan",
        "destroy_stage",
        "registry_check",
        "register_producer",
        "write_probe",
    ],
    &["arguments"],
];

/// Rooms of plain, synchronous judgement: no async, clock, environment, Kubernetes, HTTP or git in them.
const DOMAIN: &[&str] = &[
    "names",
    "yaml",
    "findings",
    "layout",
    "registry",
    "producers",
    "applications",
    "protect",
    "guard",
];

#[test]
fn imports_point_down_only() {
    let levels: BTreeMap<&str, usize> = LEVELS
        .iter()
        .enumerate()
        .flat_map(|(level, rooms)| rooms.iter().map(move |room| (*room, level)))
        .collect();
    let mut faults = Vec::new();
    for file in sources() {
        let room = room_of(&file);
        let text = std::fs::read_to_string(&file).unwrap();
        for (number, used) in used_rooms(&text) {
            let allowed = room == used
                || matches!((levels.get(room.as_str()), levels.get(used.as_str())), (Some(here), Some(there)) if there <= here);
            if room != "lib" && !allowed {
                faults.push(format!("{}:{number}: {room} uses {used}", file.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_room_stands_in_the_map_of_lib_rs_and_in_the_levels() {
    let map = std::fs::read_to_string("src/lib.rs").unwrap();
    let known: BTreeSet<String> = LEVELS
        .iter()
        .flat_map(|rooms| rooms.iter().map(ToString::to_string))
        .collect();
    let rooms: BTreeSet<String> = sources()
        .iter()
        .map(|file| room_of(file))
        .filter(|room| room != "lib")
        .collect();
    assert_eq!(rooms, known);
    for room in rooms {
        assert!(
            map.contains(&format!("[`{room}`]")),
            "{room} is missing in the map"
        );
    }
}

#[test]
fn the_domain_knows_no_async_no_clock_no_environment_and_no_outside() {
    let mut faults = Vec::new();
    for file in sources()
        .iter()
        .filter(|f| DOMAIN.contains(&room_of(f).as_str()))
    {
        if file.file_name().unwrap() == "tests.rs" {
            continue;
        }
        let text = std::fs::read_to_string(file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        for word in [
            "async fn",
            "tokio",
            "std::env",
            "std::time",
            "std::fs",
            "std::process",
            "git2",
            "axum",
            "kube::",
            "k8s_openapi",
        ] {
            for (number, line) in code.lines().enumerate() {
                if line.contains(word) && !line.trim_start().starts_with("//") {
                    faults.push(format!("{}:{}: {word}", file.display(), number + 1));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn sources() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::from("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// The room of a file: the first name below `src`.
fn room_of(file: &Path) -> String {
    let first = file.components().nth(1).unwrap().as_os_str();
    Path::new(first)
        .file_stem()
        .unwrap()
        .to_string_lossy()
        .into_owned()
}

/// Every `crate::<room>` of a file with its line.
fn used_rooms(text: &str) -> Vec<(usize, String)> {
    let mut used = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("//") {
            continue;
        }
        for after in line.split("crate::").skip(1) {
            let room: String = after
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                .collect();
            if !room.is_empty() {
                used.push((number + 1, room));
            }
        }
    }
    used
}
