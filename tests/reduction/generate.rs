//! Roots made by chance: valid for Terraform, full of what misleads a reader, with what is left of them known beforehand.

use std::collections::BTreeMap;

use crate::random::Random;

/// Values that a reader of brackets, quotes or heredocs takes wrongly. Every one is valid.
const VALUES: &[&str] = &[
    r#""a } \" # { // /*""#,
    r#""$${x} %%{y} $ % $$""#,
    "<<EO\nEOF\nxEO\nEO2\n EO x\nresource \"a\" \"b\" {\n\"\n/*\n  EO",
    "<<-X\n\t\t}\n\t\t${jsonencode({ a = \"}\" })}\n\tX",
    "<<E\n${join(\"\", [<<F\n}\nE\nF\n])}\nE",
    "[ # for x in y {\n    1, /* } */ 2 // \"\n  ]",
    "{ a = 1, \"b\" : \"}\" }",
    r#""${"nested ${"}"}"}""#,
    "(1 + # x )\n  2)",
    r#"[for k in ["a"] : k if k != "}"]"#,
    r#""%{ if true ~}x}%{ else }{%{ endif }""#,
    "1.5e3",
    "null",
];

/// Between declarations.
const BETWEEN: &[&str] = &[
    "",
    "# } \" <<X",
    "/* resource \"a\" \"b\" {\n// */",
    "// /* {",
    "/* a */ # é",
];

/// One root.
pub struct Root {
    pub files: BTreeMap<String, Vec<u8>>,
    /// What is left of each file.
    pub left: BTreeMap<String, Vec<u8>>,
}

/// A piece of a file, and whether it stays.
type Piece = (String, bool);

struct Value {
    /// Values and data sources before this one that it refers to.
    refers_to: Vec<String>,
    is_needed: bool,
}

/// The root that a seed makes.
pub fn root(seed: u64) -> Root {
    let mut random = Random(seed);
    let data = random.below(3);
    let mut values: Vec<Value> = Vec::new();
    let pick = |random: &mut Random, values: usize| -> Vec<String> {
        let mut picked = Vec::new();
        if values > 0 && random.below(2) == 0 {
            picked.push(format!("local.l{}", random.below(values)));
        }
        if data > 0 && random.below(3) == 0 {
            picked.push(format!(
                "data.terraform_remote_state.d{}",
                random.below(data)
            ));
        }
        picked
    };
    for at in 0..random.below(8) {
        values.push(Value {
            refers_to: pick(&mut random, at),
            is_needed: false,
        });
    }
    let variables: Vec<Vec<String>> = (0..random.below(4))
        .map(|_| pick(&mut random, values.len()))
        .collect();
    let mut needed: Vec<String> = variables.concat();
    let mut at = 0;
    while let Some(name) = needed.get(at).cloned() {
        at += 1;
        if let Some(index) = name.strip_prefix("local.l") {
            let value = &mut values[index.parse::<usize>().unwrap()];
            value.is_needed = true;
            let more = value.refers_to.iter().filter(|name| !needed.contains(name));
            needed.extend(more.cloned().collect::<Vec<_>>());
        }
    }
    let mut declarations: Vec<Vec<Piece>> = Vec::new();
    for (number, refers_to) in variables.iter().enumerate() {
        declarations.push(variable(&mut random, number, refers_to));
    }
    for number in 0..data {
        let is_kept = needed.contains(&format!("data.terraform_remote_state.d{number}"));
        let text = format!(
            "data \"terraform_remote_state\" \"d{number}\" {{\n  backend = \"local\"\n  config = {{\n    path = \"x\" # }}\n  }}\n}}"
        );
        declarations.push(vec![(text, is_kept)]);
    }
    let mut rest = &values[..];
    while !rest.is_empty() {
        let (block, after) = rest.split_at(1 + random.below(rest.len()));
        let first = values.len() - rest.len();
        declarations.push(locals(&mut random, first, block));
        rest = after;
    }
    for number in 0..random.below(6) {
        declarations.push(vec![other(&mut random, number)]);
    }
    declarations.push(vec![(
        "terraform {\n  required_version = \">= 1.7\" # }\n  backend \"http\" {}\n}".to_owned(),
        true,
    )]);
    spread(&mut random, declarations)
}

fn value(random: &mut Random) -> &'static str {
    VALUES[random.below(VALUES.len())]
}

fn variable(random: &mut Random, number: usize, refers_to: &[String]) -> Vec<Piece> {
    let mut all = vec![format!("var.v{number}")];
    all.extend(refers_to.iter().cloned());
    let text = format!(
        "variable \"v{number}\" {{\n  default = \"\"\n  validation {{\n    condition     = can([{}])\n    error_message = \"No }} {{.\"\n  }}\n  description = {}\n}}",
        all.join(", "),
        // A description is plain text.
        ["\"\\\"}\"", "<<EO\nEO2\n}\nEO"][random.below(2)]
    );
    vec![(text, true)]
}

fn locals(random: &mut Random, first: usize, values: &[Value]) -> Vec<Piece> {
    let is_kept = values.iter().any(|value| value.is_needed);
    let mut pieces = vec![("locals {\n".to_owned(), is_kept)];
    for (at, one) in values.iter().enumerate() {
        let mut all = one.refers_to.clone();
        if !one.is_needed && random.below(2) == 0 {
            all.push("terraform_data.r0.output".to_owned());
        }
        all.push(value(random).to_owned());
        let text = format!("l{} = [{}\n  ]", first + at, all.join(", "));
        pieces.push(("  ".to_owned(), is_kept));
        pieces.push((text, one.is_needed));
        pieces.push((" # }\n".to_owned(), is_kept));
    }
    pieces.push(("}".to_owned(), is_kept));
    pieces
}

/// A declaration that goes in any case, or a `removed` block, which stays.
fn other(random: &mut Random, number: usize) -> Piece {
    let value = value(random);
    match random.below(7) {
        0 => (
            format!(
                "removed {{\n  from = terraform_data.gone{number}\n  lifecycle {{\n    destroy = false\n  }}\n}}"
            ),
            true,
        ),
        1 => (
            format!("output \"o{number}\" {{\n  value = [{value}\n  ]\n}}"),
            false,
        ),
        2 => (
            format!("module \"m{number}\" {{\n  source = \"./m\"\n}}"),
            false,
        ),
        3 => (
            format!(
                "moved {{\n  from = terraform_data.old{number}\n  to = terraform_data.r{number}\n}}"
            ),
            false,
        ),
        4 => (
            format!(
                "check \"c{number}\" {{\n  assert {{\n    condition = can({value}\n    )\n    error_message = \"}}\"\n  }}\n}}"
            ),
            false,
        ),
        _ => (
            format!(
                "resource \"terraform_data\" \"r{number}\" {{\n  input = {value}\n  provisioner \"local-exec\" {{\n    command = \"true\" /* }} */\n  }}\n}}"
            ),
            false,
        ),
    }
}

/// Puts the declarations into files.
fn spread(random: &mut Random, mut declarations: Vec<Vec<Piece>>) -> Root {
    let mut root = Root {
        files: BTreeMap::new(),
        left: BTreeMap::new(),
    };
    for name in ["a.tf", "main.tf", "z.tf"] {
        let (mut text, mut left) = (String::new(), String::new());
        while !declarations.is_empty() && (name == "z.tf" || random.below(3) > 0) {
            let between = format!("{}\n", BETWEEN[random.below(BETWEEN.len())]);
            let declaration = declarations.remove(random.below(declarations.len()));
            let end = ("\n".to_owned(), true);
            for (piece, is_kept) in [(between, true)]
                .into_iter()
                .chain(declaration)
                .chain([end])
            {
                let ends = piece.matches('\n');
                left.push_str(&if is_kept {
                    piece.clone()
                } else {
                    ends.collect()
                });
                text.push_str(&piece);
            }
        }
        let (mark, ends) = (random.below(4) == 0, random.below(4) == 0);
        let finished = |text: &str| {
            let text = if ends {
                text.replace('\n', "\r\n")
            } else {
                text.to_owned()
            };
            let mark = if mark { "\u{feff}" } else { "" };
            format!("{mark}{text}").into_bytes()
        };
        root.files.insert(name.to_owned(), finished(&text));
        root.left.insert(name.to_owned(), finished(&left));
    }
    root
}
