//! Command lines as a shell reads them.

/// A line for a shell.
pub(super) fn line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted = |word: &str| {
        let plain = |c: char| c.is_alphanumeric() || "_-+=:,./@%".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word.into()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn a_shell_reads_the_words_back() {
        let words = ["/a/b-c", "it's two", "", "$x;&", "x=1,2"];
        let shown = line(words);
        assert_eq!(shown, r"/a/b-c 'it'\''s two' '' '$x;&' x=1,2");
        let script = format!("printf '%s|' {shown}");
        let read = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(read.stdout).unwrap(), words.map(|word| format!("{word}|")).concat());
    }
}
