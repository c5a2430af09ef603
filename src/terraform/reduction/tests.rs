use super::*;

mod form;
mod kept;
mod refused;

fn reduce_as(
    files: &[(&str, &str)],
    flavour: Flavour,
    lock: Option<&str>,
) -> Result<Reduction, ReductionError> {
    let files = files
        .iter()
        .map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()))
        .collect();
    Reduction::of(&files, "app/terraform", flavour, lock.map(str::as_bytes))
}

fn reduce(files: &[(&str, &str)]) -> Reduction {
    reduce_as(files, Flavour::Terraform, None).unwrap()
}

fn refused(files: &[(&str, &str)]) -> String {
    reduce_as(files, Flavour::Terraform, None)
        .unwrap_err()
        .to_string()
}

/// What is left of a root of one file, without empty lines; reduced twice, which must change nothing.
fn left(text: &str) -> String {
    let once = whole(text);
    let lines: Vec<&str> = once.lines().filter(|l| !l.trim().is_empty()).collect();
    lines.join("\n")
}

/// The same, with every byte.
fn whole(text: &str) -> String {
    let once = reduce(&[("main.tf", text)]).files()[0].text().to_owned();
    let again = reduce(&[("main.tf", &once)]);
    assert_eq!(again.files()[0].text(), once);
    assert_eq!(again.files()[0].dropped(), &[] as &[String]);
    assert_eq!(
        again.files()[0].kept(),
        reduce(&[("main.tf", text)]).files()[0].kept()
    );
    once
}

/// The line that tells of a root of one file.
fn line(text: &str) -> String {
    reduce(&[("main.tf", text)]).files()[0].to_string()
}
