//! Options from their source: the fields of a structure and the variants of an enumeration, with their doc comments.

/// A structure or enumeration that options are decoded to.
#[derive(Debug)]
pub(crate) struct Item {
    /// Its doc comment.
    pub text: String,
    /// Fields or variants, in their order.
    pub members: Vec<Member>,
    /// The fields of an enumeration's variants that have names.
    pub fields: Vec<Member>,
    /// The member that names the variant, if the fields stand beside it.
    pub tag: Option<String>,
}

/// A field or a variant.
#[derive(Debug, PartialEq)]
pub(crate) struct Member {
    /// Its name in a recipe.
    pub name: String,
    /// The Rust type of a field, or of what a variant holds; empty if it holds nothing.
    pub kind: String,
    /// Whether a recipe may leave it out.
    pub optional: bool,
    /// Whether the members of its value stand in its place.
    pub is_flat: bool,
    /// Its doc comment.
    pub text: String,
}

/// Reads the item `name` from a source file. It knows what rustfmt makes of the items of this program, not all of Rust.
pub(crate) fn item(source: &str, name: &str) -> Option<Item> {
    let lines: Vec<&str> = source.lines().collect();
    let opens = |line: &str, word: &str| {
        let rest = line.trim_start_matches("pub ").trim_start_matches("pub(crate) ").strip_prefix(word)?;
        let rest = rest.strip_prefix(name)?;
        (rest.starts_with(" {") || rest.starts_with('<')).then_some(())
    };
    let at = lines.iter().position(|l| opens(l, "struct ").is_some() || opens(l, "enum ").is_some())?;
    let is_enumeration = opens(lines[at], "enum ").is_some();
    let above = lines[..at].iter().rposition(|l| !l.starts_with("///") && !l.starts_with("#[")).map_or(0, |n| n + 1);
    let attributes = lines[above..at].iter().filter(|l| l.starts_with("#[serde")).copied().collect::<String>();
    let all_optional = word_in(&attributes, "default");
    let case = value_of(&attributes, "rename_all").unwrap_or_default();
    let tag = value_of(&attributes, "tag");
    let (mut members, mut fields, mut text, mut attribute) = (Vec::new(), Vec::new(), Vec::new(), String::new());
    let mut in_variant = false;
    for line in lines[at + 1..].iter().take_while(|l| **l != "}").map(|l| l.trim()) {
        if let Some(doc) = line.strip_prefix("///") {
            text.push(doc.trim());
        } else if line.starts_with("#[") {
            attribute += line;
        } else if is_enumeration && (line.ends_with('{') || line == "},") {
            in_variant = line.ends_with('{');
            text.clear();
            attribute.clear();
        } else {
            let is_variant = is_enumeration && !in_variant;
            let member = if is_variant { variant(line, &case) } else { field(line) };
            if let Some((name, kind)) = member.filter(|_| !word_in(&attribute, "skip")) {
                let optional = all_optional || word_in(&attribute, "default") || kind.starts_with("Option<");
                let name = value_of(&attribute, "rename").unwrap_or(name);
                let is_flat = word_in(&attribute, "flatten");
                let list = if in_variant { &mut fields } else { &mut members };
                list.push(Member { name, kind, optional, is_flat, text: plain(&text.join(" ")) });
            }
            text.clear();
            attribute.clear();
        }
    }
    let doc: Vec<&str> = lines[above..at].iter().filter_map(|l| l.strip_prefix("///")).map(str::trim).collect();
    Some(Item { text: plain(&doc.join(" ")), members, fields, tag })
}

/// The name and type of `pub name: Type,`.
fn field(line: &str) -> Option<(String, String)> {
    let line = line.trim_start_matches("pub ").trim_start_matches("pub(crate) ").strip_suffix(',')?;
    let (name, kind) = line.split_once(": ")?;
    Some((name.into(), kind.into()))
}

/// The name, as serde writes it, and the content of `Name,` or `Name(Type),`.
fn variant(line: &str, case: &str) -> Option<(String, String)> {
    let line = line.strip_suffix(',')?;
    let (name, kind) = match line.split_once('(') {
        Some((name, kind)) => (name, kind.strip_suffix(')')?),
        None => (line, ""),
    };
    if !name.chars().all(char::is_alphanumeric) {
        return None;
    }
    let name = match case {
        "lowercase" => name.to_lowercase(),
        _ => name.chars().enumerate().fold(String::new(), |mut snake, (n, c)| {
            if n > 0 && c.is_uppercase() {
                snake.push('_');
            }
            snake.extend(c.to_lowercase());
            snake
        }),
    };
    Some((name, kind.into()))
}

fn word_in(attributes: &str, word: &str) -> bool {
    attributes.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == word)
}

fn value_of(attributes: &str, key: &str) -> Option<String> {
    let (_, after) = attributes.split_once(&format!("{key} = \""))?;
    Some(after.split('"').next().unwrap_or_default().to_owned())
}

/// A doc comment without rustdoc's links, which lead nowhere in a recipe's reference: `([link])` is dropped.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("[`") {
        let Some(end) = rest[start..].find("`]") else { break };
        let (path, after) = (&rest[start + 2..start + end], &rest[start + end + 2..]);
        match (rest[..start].strip_suffix(" ("), after.strip_prefix(')')) {
            (Some(before), Some(after)) => {
                plain += before;
                rest = after;
            }
            _ => {
                plain += &format!("{}`{}`", &rest[..start], path.rsplit("::").next().unwrap_or(path));
                rest = after;
            }
        }
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "
/// What a [`crate::halo::Halo`] is,
/// in two lines.
#[derive(Clone)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Density ([`delta`]).
    pub delta: f64,
    /// Level.
    #[serde(default)]
    pub level: usize,
    /// Box.
    #[serde(rename = \"box\")]
    length: Option<f64>,
    #[serde(skip)]
    cache: OnceLock<f64>,
}

#[serde(tag = \"by\", rename_all = \"snake_case\")]
enum Bins {
    /// Even.
    EvenlySpaced,
    /// From one to another.
    Between {
        /// The first.
        low: f64,
    },
    /// In decades.
    PerDecade(usize),
}
";

    #[test]
    fn fields_and_variants_are_found() {
        let options = item(SOURCE, "Options").unwrap();
        assert_eq!(options.text, "What a `Halo` is, in two lines.");
        let found: Vec<_> =
            options.members.iter().map(|m| (m.name.as_str(), m.kind.as_str(), m.optional, m.text.as_str())).collect();
        let expected = [
            ("delta", "f64", false, "Density."),
            ("level", "usize", true, "Level."),
            ("box", "Option<f64>", true, "Box."),
        ];
        assert_eq!(found, expected);
        let bins = item(SOURCE, "Bins").unwrap();
        let found: Vec<_> = bins.members.iter().map(|m| (m.name.as_str(), m.kind.as_str())).collect();
        assert_eq!(found, [("evenly_spaced", ""), ("per_decade", "usize")]);
        assert_eq!(
            (bins.fields.len(), bins.fields[0].text.as_str(), bins.tag.as_deref()),
            (1, "The first.", Some("by"))
        );
        assert!(item(SOURCE, "Bin").is_none());
    }
}
