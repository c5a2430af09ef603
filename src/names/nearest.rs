//! Names that are like one that is not there.

/// At most three of the names, those first that have most in common with the wanted one.
pub fn nearest(wanted: &str, names: impl IntoIterator<Item = String>) -> Vec<String> {
    let wanted = pairs(wanted);
    let distance = |name: &str| {
        let pairs = pairs(name);
        let shared = pairs.iter().filter(|pair| wanted.contains(pair)).count();
        (wanted.len() + pairs.len()).saturating_sub(2 * shared)
    };
    let mut near: Vec<(usize, String)> = names
        .into_iter()
        .map(|name| (distance(&name), name))
        .collect();
    near.sort();
    near.dedup();
    near.into_iter().take(3).map(|(_, name)| name).collect()
}

/// The text's characters in twos, without their case.
fn pairs(text: &str) -> Vec<(char, char)> {
    let text: Vec<char> = text.to_lowercase().chars().collect();
    text.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_with_most_in_common_comes_first() {
        let names = [
            "ArgoCDDeploy",
            "FieldnotesDeploy",
            "PlatformDeploy",
            "TerraformState",
        ];
        let near = nearest("FieldnotedDeploy", names.map(str::to_owned));
        assert_eq!(near.len(), 3);
        assert_eq!(near[0], "FieldnotesDeploy");
        assert_eq!(nearest("x", []), Vec::<String>::new());
    }
}
