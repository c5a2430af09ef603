//! The edit of the producers' file keeps every byte that it does not have to change, in files with comments in every position.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

use std::fmt::Write as _;

use proptest::prelude::*;
use stagewright::producers::edit::{Edit, add, remove, repoint};
use stagewright::producers::{Producer, Producers};

/// How an entry is written.
#[derive(Clone, Debug)]
struct Written {
    repo: Option<u8>,
    /// A folder, and with it a job that others may share.
    path: bool,
    deploy: bool,
    quote: u8,
    /// Which keys come first.
    order: u8,
    above: u8,
    beside: u8,
    inside: u8,
    below: u8,
    dash_alone: bool,
}

#[derive(Clone, Debug)]
struct File {
    indent: usize,
    gap: usize,
    crlf: bool,
    no_final_newline: bool,
    head: bool,
    entries: Vec<Written>,
}

fn written() -> impl Strategy<Value = Written> {
    let flags = (any::<bool>(), any::<bool>(), prop::bool::weighted(0.1));
    let counts = (0..3u8, 0..6u8, 0..4u8, 0..3u8, 0..4u8, 0..4u8);
    (prop::option::of(0..4u8), flags, counts).prop_map(
        |(repo, (path, deploy, dash_alone), (quote, order, above, beside, inside, below))| {
            Written {
                repo,
                path,
                deploy,
                quote,
                order,
                above,
                beside,
                inside,
                below,
                dash_alone,
            }
        },
    )
}

fn file() -> impl Strategy<Value = File> {
    let entries = prop::collection::vec(written(), 1..7);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (
        prop::sample::select(vec![0, 2, 4]),
        1..4usize,
        flags,
        entries,
    )
        .prop_map(
            |(indent, gap, (crlf, no_final_newline, head), entries)| File {
                indent,
                gap,
                crlf,
                no_final_newline,
                head,
                entries,
            },
        )
}

fn producer(number: usize, entry: &Written) -> Producer {
    let end = if entry.deploy { "-deploy" } else { "" };
    let repo = entry.repo.map(|repo| format!("example/Repo{repo}"));
    Producer {
        id: format!("p{number}{end}").parse().unwrap(),
        repo: repo.map(|repo| repo.parse().unwrap()),
        job: match entry.path {
            true => "AaC/Shared Job".parse().unwrap(),
            false => format!("AaC/Job {number}").parse().unwrap(),
        },
        path: entry
            .path
            .then(|| format!("apps/p{number}").parse().unwrap()),
        is_self: false,
        default_logo: None,
    }
}

fn quoted(text: &str, how: u8) -> String {
    match how {
        0 => text.to_owned(),
        1 => format!("'{text}'"),
        _ => format!("\"{text}\""),
    }
}

fn text(file: &File) -> String {
    let mut text = String::new();
    if file.head {
        text.push_str("# Who publishes.\n\n");
    }
    text.push_str("producers: # all of them\n");
    let dash = " ".repeat(file.indent);
    let keys = " ".repeat(file.indent + 1 + file.gap);
    for (number, entry) in file.entries.iter().enumerate() {
        match entry.above {
            1 => writeln!(text, "{dash}# -- a section --").unwrap(),
            2 => text.push('\n'),
            3 => write!(text, "\n{dash}# of {number}\n").unwrap(),
            _ => {}
        }
        let producer = producer(number, entry);
        let mut values = vec![("id", producer.id.to_string())];
        values.extend(producer.repo.map(|repo| ("repo", repo.to_string())));
        values.push(("jenkinsJob", producer.job.to_string()));
        values.extend(producer.path.map(|path| ("path", path.to_string())));
        let count = values.len();
        values.rotate_left(usize::from(entry.order) % count);
        for (at, (key, value)) in values.into_iter().enumerate() {
            let before = match at {
                0 if entry.dash_alone => {
                    writeln!(text, "{dash}- # {number}").unwrap();
                    keys.clone()
                }
                0 => format!("{dash}-{}", " ".repeat(file.gap)),
                _ => keys.clone(),
            };
            let beside = match entry.beside {
                1 => " # why",
                2 => "   #why",
                _ => "",
            };
            writeln!(
                text,
                "{before}{key}: {}{beside}",
                quoted(&value, entry.quote)
            )
            .unwrap();
            if at == usize::from(entry.inside) && at + 1 < count {
                writeln!(text, "\n{keys}# inside {key}").unwrap();
            }
        }
        match entry.below {
            1 => writeln!(text, "{keys}# the end of {number}").unwrap(),
            2 => writeln!(text, "{keys}defaultLogo: logo # {number}").unwrap(),
            3 => writeln!(text, "\n{keys}# far below").unwrap(),
            _ => {}
        }
    }
    if file.no_final_newline {
        text.truncate(text.trim_end().len());
    }
    if file.crlf {
        text = text.replace('\n', "\r\n");
    }
    text
}

fn text_of(edit: Edit) -> String {
    match edit {
        Edit::Text(text) => text,
        Edit::Nothing => panic!("nothing was done"),
    }
}

/// Whether `longer` is `shorter` with one run of whole lines more.
fn is_with_lines(longer: &str, shorter: &str) -> bool {
    let (long, short): (Vec<&str>, Vec<&str>) =
        (longer.lines().collect(), shorter.lines().collect());
    let same = long.iter().zip(&short).take_while(|(a, b)| a == b).count();
    let more = long.len() - short.len();
    (0..=same).any(|at| long[..at] == short[..at] && long[at + more..] == short[at..])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_added_is_all_that_changes_and_taken_away_again_it_leaves_the_file_as_it_was(
        file in file(), new in written(),
    ) {
        let before = text(&file);
        let wanted = producer(99, &new);
        let all = Producers::read(&before, "p.yaml").unwrap();
        let after = text_of(add(&before, "p.yaml", &wanted).unwrap());
        prop_assert!(is_with_lines(&after, &before), "{before}\n---\n{after}");
        let ends = if file.crlf { after.matches("\r\n").count() } else { 0 };
        prop_assert_eq!(after.matches('\n').count(), if file.crlf { ends } else { after.matches('\n').count() });
        prop_assert_eq!(add(&after, "p.yaml", &wanted).unwrap(), Edit::Nothing);
        let read = Producers::read(&after, "p.yaml").unwrap();
        prop_assert_eq!(read.all().len(), all.all().len() + 1);
        let back = text_of(remove(&after, "p.yaml", &wanted.id).unwrap());
        // A line ending that the last line had not, it has then.
        prop_assert_eq!(back.trim_end(), before.trim_end());
    }

    #[test]
    fn what_is_pointed_elsewhere_and_back_is_as_it_was_and_nothing_else_changes(
        file in file(), which in any::<prop::sample::Index>(),
    ) {
        let before = text(&file);
        let at = which.index(file.entries.len());
        let there = producer(at, &file.entries[at]);
        let wanted = Producer {
            repo: there.repo.as_ref().map(|_| "elsewhere/Repo".parse().unwrap()),
            job: "AaC/Elsewhere".parse().unwrap(),
            path: there.path.as_ref().map(|_| "elsewhere".parse().unwrap()),
            ..there.clone()
        };
        let after = text_of(repoint(&before, "p.yaml", &wanted).unwrap());
        let changed = before.lines().zip(after.lines()).filter(|(a, b)| a != b).count();
        let values = 1 + usize::from(there.repo.is_some()) + usize::from(there.path.is_some());
        prop_assert_eq!(changed, values, "{}\n---\n{}", before, after);
        prop_assert_eq!(before.lines().count(), after.lines().count());
        let back = text_of(repoint(&after, "p.yaml", &there).unwrap());
        // Quotes that a value does not need are gone.
        prop_assert_eq!(back.replace(['"', '\''], ""), before.replace(['"', '\''], ""));
    }

    #[test]
    fn what_is_removed_takes_only_its_own_lines_along(file in file(), which in any::<prop::sample::Index>()) {
        let before = text(&file);
        let at = which.index(file.entries.len());
        let id = producer(at, &file.entries[at]).id;
        if file.entries.len() == 1 {
            prop_assert!(remove(&before, "p.yaml", &id).is_err());
            return Ok(());
        }
        let after = text_of(remove(&before, "p.yaml", &id).unwrap());
        prop_assert!(is_with_lines(&before, &after), "{before}\n---\n{after}");
        for (number, entry) in file.entries.iter().enumerate().filter(|(number, _)| *number != at) {
            if entry.above == 3 {
                let comment = format!("# of {number}");
                prop_assert!(after.contains(&comment), "{}", after);
            }
        }
    }
}
