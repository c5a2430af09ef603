//! A container's log put together from streams that were cut, against a model of the kubelet.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "support/kubelet.rs"]
mod kubelet;

use kubelet::{EPOCH, Record, SPLIT, Style, records, serve, stamp, text};
use proptest::prelude::*;
use proptest::sample::Index;
use stagewright::cluster::logs::reassemble::{Delivered, Part, Reassembly, Tail};

const SECOND: i64 = 1_000_000_000;

/// What was delivered: the texts between gaps.
fn texts(parts: &[Part]) -> Vec<Vec<u8>> {
    let mut texts = vec![Vec::new()];
    for part in parts {
        match part {
            Part::Bytes(bytes) => texts.last_mut().unwrap().extend(bytes),
            Part::Gap(_) => texts.push(Vec::new()),
        }
    }
    texts
}

/// The parts with the beginnings and ends of their texts.
fn shown(parts: &[Part]) -> String {
    let shown = parts.iter().map(|part| match part {
        Part::Bytes(text) => {
            let ends = [
                &text[..text.len().min(30)],
                &text[text.len().saturating_sub(30)..],
            ];
            format!("{} {:?}\n", text.len(), ends.map(String::from_utf8_lossy))
        }
        Part::Gap(gap) => format!("{gap:?}\n"),
    });
    shown.collect()
}

/// Reads a stream in pieces of this size.
fn read(log: &mut Reassembly, bytes: &[u8], piece: usize, parts: &mut Vec<Part>) {
    for piece in bytes.chunks(piece) {
        parts.extend(log.push(piece));
    }
}

/// Reads to the end of a log that does not change, over streams that are cut there.
fn read_cut(
    records: &[Record],
    cuts: &[Index],
    piece: usize,
    style: Style,
) -> (Vec<Part>, Tail, Delivered) {
    let mut log = Reassembly::default();
    let mut parts = Vec::new();
    for cut in cuts {
        let since = log.resume();
        let served = serve(records, 0, since, style).bytes;
        let cut = cut.index(served.len() + 1);
        read(&mut log, &served[..cut], piece, &mut parts);
    }
    let since = log.resume();
    read(
        &mut log,
        &serve(records, 0, since, style).bytes,
        piece,
        &mut parts,
    );
    let (rest, tail) = log.finish();
    parts.extend(rest);
    (parts, tail, log.delivered())
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..40),
        2 => Just(b"same".to_vec()),
        1 => Just(Vec::new()),
        1 => Just(vec![0, 0xff, 0xc3]),
        1 => Just(stamp(EPOCH + 5 * SECOND).into_bytes()),
        1 => (SPLIT - 1..=SPLIT + 1).prop_map(|n| vec![b'x'; n]),
        1 => Just((0..70 * 1024_u32).map(|n| (n / 7 % 251) as u8).collect()),
    ];
    bytes.prop_map(|mut line| {
        line.iter_mut()
            .filter(|b| **b == b'\n')
            .for_each(|b| *b = b'n');
        line.push(b'\n');
        line
    })
}

/// Lines with the time from one to the next.
fn lines(step: impl Strategy<Value = i64>) -> impl Strategy<Value = Vec<(i64, Vec<u8>)>> {
    (
        prop::collection::vec((step, content()), 0..40),
        any::<bool>(),
    )
        .prop_map(|(lines, open)| {
            let mut time = EPOCH + 86_400 * SECOND;
            let mut lines: Vec<_> = lines
                .into_iter()
                .map(|(step, line)| {
                    time += step;
                    (time, line)
                })
                .collect();
            if let (true, Some((_, last))) = (open, lines.last_mut()) {
                last.pop();
            }
            lines
        })
}

fn forward() -> impl Strategy<Value = i64> {
    prop_oneof![3 => Just(0), 5 => 1..1000_i64, 3 => 0..SECOND, 1 => 0..5 * SECOND]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if std::env::var_os("STAGEWRIGHT_FULL").is_some() { 3000 } else { 300 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_log_that_is_there_is_delivered_once_and_in_order_wherever_it_is_cut(
        lines in lines(forward()),
        apart in prop_oneof![Just(0), 0..1000_i64, 0..SECOND],
        cuts in prop::collection::vec(any::<Index>(), 0..12),
        piece in prop_oneof![1..64_usize, Just(65_536)],
    ) {
        // Within a line the clock goes on as well.
        let mut lines = lines;
        let mut late = 0;
        for (time, line) in &mut lines {
            *time += late;
            late += apart * (line.len() / SPLIT) as i64;
        }
        let records = records(&lines, apart);
        let (parts, tail, delivered) = read_cut(&records, &cuts, piece, Style::New);
        let texts = texts(&parts);
        let expected = text(&records);
        prop_assert_eq!(texts.len(), 1, "a gap");
        prop_assert!(texts[0] == expected, "{} of {} bytes", texts[0].len(), expected.len());
        prop_assert_eq!(tail, Tail::Seen);
        let ends = expected.iter().filter(|b| **b == b'\n').count() as u64;
        prop_assert_eq!(delivered, Delivered { lines: ends, bytes: expected.len() as u64, gaps: 0 });
    }

    #[test]
    fn a_clock_that_steps_back_loses_only_what_the_filter_leaves_out(
        lines in lines(prop_oneof![6 => forward(), 1 => -20 * SECOND..0]),
        cuts in prop::collection::vec(any::<Index>(), 0..12),
    ) {
        let records = records(&lines, 0);
        let mut log = Reassembly::default();
        let mut parts = Vec::new();
        let mut sent = 0;
        let mut hidden = false;
        for cut in cuts.iter().map(Some).chain([None]) {
            let served = serve(&records, 0, log.resume(), Style::New);
            let cut = cut.map_or(served.bytes.len(), |cut| cut.index(served.bytes.len() + 1));
            hidden |= served.left_out.iter().any(|number| *number >= sent);
            read(&mut log, &served.bytes[..cut], 1000, &mut parts);
            let seen = served.of.iter().filter(|(_, at)| at.start < cut);
            sent = seen.map(|(number, _)| number + 1).max().unwrap_or(0).max(sent);
        }
        parts.extend(log.finish().0);
        let texts = texts(&parts);
        if !hidden {
            prop_assert_eq!(texts.len(), 1, "a gap");
            prop_assert!(texts[0] == text(&records));
        }
    }

    #[test]
    fn what_was_rotated_away_is_missing_at_a_gap_and_nothing_comes_twice(
        steps in prop::collection::vec(forward(), 1..60),
        long in prop::collection::vec(any::<Index>(), 0..3),
        reads in prop::collection::vec((any::<Index>(), any::<Index>(), any::<Index>()), 1..8),
    ) {
        let mut time = EPOCH + 86_400 * SECOND;
        let mut lines: Vec<(i64, Vec<u8>)> = steps.iter().enumerate().map(|(number, step)| {
            // No two lines of a node are of one nanosecond.
            time += step + 10;
            (time, format!("line {number}\n").into_bytes())
        }).collect();
        for at in long {
            let line = &mut at.get_mut(&mut lines).1;
            line.splice(0..0, (0..5000).flat_map(|n| format!("{n:07},").into_bytes()));
        }
        let records = records(&lines, 1);
        let expected = text(&records);
        let mut log = Reassembly::default();
        let mut parts = Vec::new();
        // What the log has at the time of each reading, and where its file begins.
        let mut file = 0;
        let mut written = 0;
        let mut may_gap = 0;
        let mut sent = 0;
        for read_now in reads.iter().map(Some).chain([None]) {
            written = read_now.map_or(records.len(), |(add, _, _)| written + add.index(records.len() - written + 1));
            file = read_now.map_or(file, |(_, rotate, _)| file + rotate.index(written - file + 1));
            let served = serve(&records[..written], file, log.resume(), Style::New);
            // The last line that came whole can be joined as long as it is there, whole.
            let ends = |record: &Record| record.content.ends_with(b"\n");
            let last = (1..=sent).rev().find(|number| ends(&records[number - 1])).unwrap_or(0);
            let line = (1..last).rev().find(|number| ends(&records[number - 1])).unwrap_or(0);
            may_gap += u64::from(file > line);
            let cut = read_now.map_or(served.bytes.len(), |(_, _, cut)| cut.index(served.bytes.len() + 1));
            read(&mut log, &served.bytes[..cut], 1000, &mut parts);
            let seen = served.of.iter().rev().find(|(_, at)| at.end <= cut);
            sent = seen.map_or(0, |(number, _)| number + 1).max(sent);
        }
        let (rest, tail) = log.finish();
        parts.extend(rest);
        prop_assert!(log.delivered().gaps <= may_gap, "{} gaps for {may_gap}", log.delivered().gaps);
        let within: Vec<bool> = parts.iter().filter_map(|part| match part {
            Part::Gap(gap) => Some(gap.within_line),
            Part::Bytes(_) => None,
        }).collect();
        let mut from = 0;
        for (number, text) in texts(&parts).into_iter().enumerate() {
            if number > 0 && within[number - 1] {
                // Of a line that was cut where its file was rotated too, a part may come again behind the gap.
                from = expected[..from].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
            }
            let rest = &expected[from..];
            let at = (0..=rest.len()).find(|at| rest[*at..].starts_with(&text));
            prop_assert!(at.is_some(), "comes twice or not in order: {}", shown(&parts));
            from += at.unwrap() + text.len();
        }
        prop_assert!(tail == Tail::NotSeen || from == expected.len() || from == 0, "the end is missing");
    }
}

const T1: &str = "2026-01-02T00:00:01.100000000Z ";
const T3: &str = "2026-01-02T00:00:03.300000000Z ";
const T5: &str = "2026-01-02T00:00:05.500000000Z ";

/// Reads these streams one after another, and the log to its end with the last one.
fn join(streams: &[&str]) -> (String, Vec<Option<i64>>, Tail) {
    let mut log = Reassembly::default();
    let (mut parts, mut since) = (Vec::new(), Vec::new());
    for stream in streams {
        since.push(log.resume());
        parts.extend(log.push(stream.as_bytes()));
    }
    let (rest, tail) = log.finish();
    parts.extend(rest);
    let texts = texts(&parts);
    let texts = texts
        .iter()
        .map(|text| String::from_utf8_lossy(text).into_owned());
    (texts.collect::<Vec<_>>().join("<gap>"), since, tail)
}

#[test]
fn a_log_is_asked_for_again_from_the_whole_second_at_least_one_before_the_last_line() {
    let first = format!("{T1}a\n{T3}b\n{T5}c\n");
    let again = format!("{T3}b\n{T5}c\n{T5}d\n");
    let (text, since, tail) = join(&[&first, &again]);
    assert_eq!(text, "a\nb\nc\nd\n");
    // 2026-01-02T00:00:03Z
    assert_eq!(since, [None, Some(1_767_312_003)]);
    assert_eq!(tail, Tail::Seen);
}

#[test]
fn equal_lines_of_one_moment_keep_their_count() {
    let first = format!("{T1}x\n{T1}x\n{T1}x\n");
    let again = format!("{T1}x\n{T1}x\n{T1}x\n{T1}x\n{T1}x\n");
    assert_eq!(join(&[&first, &again]).0, "x\nx\nx\nx\nx\n");
}

#[test]
fn a_line_that_was_cut_goes_on_at_its_next_byte() {
    let whole = format!("{T1}a\n{T1}0123456789\n");
    for cut in 0..=whole.len() {
        assert_eq!(join(&[&whole[..cut], &whole]).0, "a\n0123456789\n", "{cut}");
    }
}

#[test]
fn a_stream_may_begin_with_the_end_of_a_line_that_is_older_with_or_without_a_time() {
    let long = "y".repeat(20_000);
    let first = format!("{T1}{long}\n{T3}b\n{T5}c\n");
    for tail in [
        long[SPLIT..].to_owned(),
        format!("2026-01-02T00:00:03.000000001Z {}", &long[SPLIT..]),
    ] {
        let again = format!("{tail}\n{T3}b\n{T5}c\nd");
        let expected = format!("{long}\nb\nc\n");
        assert_eq!(join(&[&first, &again]).0, expected);
    }
}

#[test]
fn where_nothing_joins_a_gap_stands() {
    let first = format!("{T1}a\n{T1}b");
    let again = format!("{T3}c\n{T5}d\n");
    assert_eq!(
        join(&[&first, &again]),
        ("a\nb<gap>c\nd\n".to_owned(), vec![None, None], Tail::Seen)
    );
    let mut log = Reassembly::default();
    log.push(first.as_bytes());
    log.resume();
    let Some(Part::Gap(gap)) = log.push(again.as_bytes()).into_iter().next() else {
        panic!("no gap");
    };
    assert!(gap.within_line);
    assert_eq!(
        gap.to_string(),
        "lines of the log may be missing here, between 2026-01-02T00:00:01.1Z and 2026-01-02T00:00:03.3Z"
    );
}

#[test]
fn a_log_that_was_rotated_away_has_no_end_that_was_seen() {
    let first = format!("{T1}a\n{T3}b\n");
    assert_eq!(
        join(&[&first, ""]),
        (
            "a\nb\n".to_owned(),
            vec![None, Some(1_767_312_001)],
            Tail::NotSeen
        )
    );
    let part_of_it = format!("{T1}a\n");
    assert_eq!(join(&[&first, &part_of_it]).2, Tail::NotSeen);
    assert_eq!(join(&[&first, &format!("{T3}b\n")]).2, Tail::Seen);
    assert_eq!(join(&[""]).2, Tail::Seen);
}

#[test]
fn what_the_kubelet_says_at_the_end_of_a_stream_is_no_part_of_the_log() {
    let mut log = Reassembly::default();
    log.resume();
    let stream = format!("{T1}a\nfailed to create fsnotify watcher: too many open files");
    assert_eq!(log.push(stream.as_bytes()), [Part::Bytes(b"a\n".to_vec())]);
    assert_eq!(
        log.aside().unwrap(),
        "failed to create fsnotify watcher: too many open files"
    );
    log.resume();
    assert_eq!(
        log.push(format!("{T1}a\n{T3}b\n").as_bytes()),
        [Part::Bytes(b"b\n".to_vec())]
    );
}

#[test]
fn an_old_kubelets_times_within_a_long_line_stay_in_it_once() {
    let lines = [
        (EPOCH, [vec![b'z'; 40_000], b"\n".to_vec()].concat()),
        (EPOCH + 3 * SECOND, b"end\n".to_vec()),
    ];
    let records = records(&lines, 7);
    let (parts, tail, delivered) = read_cut(&records, &[], 1000, Style::Old);
    assert_eq!((tail, delivered.bytes), (Tail::Seen, 40_001 + 4 + 2 * 31));
    for cut in (0..40_000).step_by(997) {
        let mut log = Reassembly::default();
        let mut again = Vec::new();
        for cut in [Some(cut), None] {
            let stream = serve(&records, 0, log.resume(), Style::Old).bytes;
            read(
                &mut log,
                &stream[..cut.unwrap_or(stream.len())],
                500,
                &mut again,
            );
        }
        assert_eq!(texts(&again), texts(&parts), "{cut}");
    }
}

#[test]
fn a_million_lines_of_one_second_are_joined_by_their_place() {
    let mut first = String::new();
    for number in 0..1_000_000 {
        first.push_str(&format!(
            "2026-01-02T00:00:01.{number:09}Z {}\n",
            number % 7
        ));
    }
    let mut log = Reassembly::default();
    log.resume();
    let (half, _) = first.split_at(first.len() / 2 + 5);
    log.push(half.as_bytes());
    log.resume();
    log.push(first.as_bytes());
    let expected = Delivered {
        lines: 1_000_000,
        bytes: 2_000_000,
        gaps: 0,
    };
    assert_eq!(log.delivered(), expected);
    // What is left after a rotation is found by its time, though it is no more remembered line by line.
    log.resume();
    let from = first.find("01.000500000Z").unwrap() - "2026-01-02T00:00:".len();
    log.push(&first.as_bytes()[from..]);
    assert_eq!((log.delivered(), log.caught_up()), (expected, true));
}
