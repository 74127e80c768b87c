//! The recipe's text: tokens, lines and carets, and the text of a closure for its fingerprint.
//!
//! Rhai keeps no text of a closure and no position of a map key, so both are found again in the source from the
//! position of the call, which Rhai does report.

use std::ops::Range;
use std::path::PathBuf;

/// A place in a recipe: line and column, both counted from 1 in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
}

/// A recipe's text and where it came from.
#[derive(Clone, Debug)]
pub struct Source {
    /// The file, as the user named it.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
}

/// What a piece of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Word,
    Text,
    Symbol,
}

/// A token: its kind and its bytes in the text.
#[derive(Clone, Debug)]
struct Token {
    kind: Kind,
    bytes: Range<usize>,
}

impl Source {
    /// The file's name without its folder, for messages.
    pub fn name(&self) -> String {
        self.path.file_name().map_or_else(|| "recipe".into(), |name| name.to_string_lossy().into_owned())
    }

    /// A line of the text, counted from 1.
    pub fn line(&self, number: usize) -> &str {
        self.text.lines().nth(number.saturating_sub(1)).unwrap_or("")
    }

    /// The last line that holds anything but white space, for an error about the recipe's value.
    pub fn last_place(&self) -> Place {
        let line = self.text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty()).map(|(n, _)| n + 1);
        Place { line: line.last().unwrap_or(1), column: 1 }
    }

    /// Where `key:` stands inside the call that starts at `call`; `None` if its options are written elsewhere.
    pub fn find_key(&self, call: Place, key: &str) -> Option<Place> {
        let tokens = self.tokens();
        let arguments = self.arguments(&tokens, call)?;
        let whole = arguments.first()?.start..arguments.last()?.end;
        whole
            .filter(|&n| {
                let token = &tokens[n];
                let name = self.text[token.bytes.clone()].trim_matches('"');
                token.kind != Kind::Symbol && name == key && self.symbol(&tokens, n + 1) == Some(":")
            })
            .map(|n| self.place(tokens[n].bytes.start))
            .next()
    }

    /// Where the last argument of the call at `call` begins.
    pub fn last_argument(&self, call: Place) -> Option<Place> {
        let tokens = self.tokens();
        let last = self.arguments(&tokens, call)?.pop()?;
        Some(self.place(tokens[last.start].bytes.start))
    }

    /// The text that a closure's fingerprint rests on: the last argument of the call at `call`, and every script
    /// function and constant that it names, and so on. Comments and white space do not count.
    ///
    /// Constants are included because a closure may itself be one; a constant that is captured also counts by value.
    pub fn closure_text(&self, call: Place) -> Option<String> {
        let tokens = self.tokens();
        let last = self.arguments(&tokens, call)?.pop()?;
        self.text_of(&tokens, last)
    }

    /// The same of the closure that is the option `key` of the call at `call`, and where it begins.
    pub fn option_text(&self, call: Place, key: &str) -> Option<(String, Place)> {
        let tokens = self.tokens();
        let at = self.find_key(call, key)?;
        let start = tokens.iter().position(|token| self.place(token.bytes.start) == at)? + 2;
        let (mut depth, mut in_parameters) = (0, false);
        let end = (start..tokens.len()).find(|&n| {
            let end = depth == 0 && !in_parameters && matches!(self.symbol(&tokens, n), Some("," | "}" | ")"));
            match self.symbol(&tokens, n) {
                Some("(" | "[" | "{") => depth += 1,
                Some(")" | "]" | "}") => depth -= 1,
                Some("|") if depth == 0 => in_parameters = !in_parameters,
                _ => {}
            }
            end
        })?;
        Some((self.text_of(&tokens, start..end)?, self.place(tokens[start].bytes.start)))
    }

    /// The text of a closure, and of what it names.
    fn text_of(&self, tokens: &[Token], closure: Range<usize>) -> Option<String> {
        let inline = matches!(self.symbol(tokens, closure.start), Some("|"));
        let mut pieces = vec![closure];
        let mut done = 0;
        while done < pieces.len() {
            for n in pieces[done].clone() {
                let name = self.text[tokens[n].bytes.clone()].trim_matches('"').to_owned();
                if tokens[n].kind == Kind::Symbol {
                    continue;
                }
                let definition = self.function(tokens, &name).or_else(|| {
                    let by_name = done == 0 && !inline;
                    if by_name { self.constant(tokens, &name) } else { None }
                });
                if let Some(definition) = definition.filter(|d| !pieces.contains(d)) {
                    pieces.push(definition);
                }
            }
            done += 1;
        }
        let text =
            |range: Range<usize>| range.map(|n| &self.text[tokens[n].bytes.clone()]).collect::<Vec<_>>().join(" ");
        Some(pieces.into_iter().map(text).collect::<Vec<_>>().join("\n"))
    }

    /// The definition `fn name(…) {…}` as a range of tokens.
    fn function(&self, tokens: &[Token], name: &str) -> Option<Range<usize>> {
        let start = (0..tokens.len().saturating_sub(1)).find(|&n| {
            self.text[tokens[n].bytes.clone()] == *"fn" && self.text[tokens[n + 1].bytes.clone()] == *name
        })?;
        let open = (start..tokens.len()).find(|&n| self.symbol(tokens, n) == Some("{"))?;
        Some(start..self.closing(tokens, open)? + 1)
    }

    /// The statement `const name = …;` as a range of tokens.
    fn constant(&self, tokens: &[Token], name: &str) -> Option<Range<usize>> {
        let start = (1..tokens.len()).find(|&n| {
            matches!(&self.text[tokens[n - 1].bytes.clone()], "const" | "let")
                && self.text[tokens[n].bytes.clone()] == *name
        })?;
        let mut depth = 0;
        let end = (start..tokens.len()).find(|&n| {
            match self.symbol(tokens, n) {
                Some("(" | "[" | "{") => depth += 1,
                Some(")" | "]" | "}") => depth -= 1,
                _ => {}
            }
            depth == 0 && self.symbol(tokens, n) == Some(";")
        })?;
        Some(start..end)
    }

    /// The arguments of the call whose name stands at `call`, as ranges of tokens.
    fn arguments(&self, tokens: &[Token], call: Place) -> Option<Vec<Range<usize>>> {
        let start = tokens.iter().position(|token| self.place(token.bytes.start) == call)?;
        let open = (start..tokens.len()).find(|&n| self.symbol(tokens, n) == Some("("))?;
        let close = self.closing(tokens, open)?;
        let (mut ranges, mut begin, mut depth, mut in_parameters) = (Vec::new(), open + 1, 0, false);
        for n in open + 1..close {
            match self.symbol(tokens, n)? {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                "|" if depth == 0 => in_parameters = !in_parameters,
                "," if depth == 0 && !in_parameters => {
                    ranges.push(begin..n);
                    begin = n + 1;
                }
                _ => {}
            }
        }
        if begin < close {
            ranges.push(begin..close);
        }
        Some(ranges)
    }

    /// The token that closes the bracket at token `open`.
    fn closing(&self, tokens: &[Token], open: usize) -> Option<usize> {
        let mut depth = 0;
        (open..tokens.len()).find(|&n| {
            match self.symbol(tokens, n) {
                Some("(" | "[" | "{") => depth += 1,
                Some(")" | "]" | "}") => depth -= 1,
                _ => {}
            }
            depth == 0
        })
    }

    /// The text of token `n` if it is a symbol, an empty text if it is another, `None` beyond the end.
    fn symbol(&self, tokens: &[Token], n: usize) -> Option<&str> {
        let token = tokens.get(n)?;
        Some(if token.kind == Kind::Symbol { &self.text[token.bytes.clone()] } else { "" })
    }

    fn place(&self, byte: usize) -> Place {
        let before = &self.text[..byte];
        let line_start = before.rfind('\n').map_or(0, |n| n + 1);
        Place { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
    }

    /// Words (names and numbers), texts in quotes and one-character symbols; comments and white space are dropped.
    fn tokens(&self) -> Vec<Token> {
        let text = &self.text;
        let mut tokens = Vec::new();
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            let rest = &text[at..];
            let word = |c: char| c.is_alphanumeric() || c == '_';
            let (kind, length) = match c {
                _ if c.is_whitespace() => (None, c.len_utf8()),
                _ if rest.starts_with("//") => (None, rest.find('\n').unwrap_or(rest.len())),
                _ if rest.starts_with("/*") => (None, comment_length(rest)),
                '"' | '`' | '\'' => (Some(Kind::Text), quoted_length(rest, c)),
                _ if word(c) => (Some(Kind::Word), rest.find(|c| !word(c)).unwrap_or(rest.len())),
                _ => (Some(Kind::Symbol), c.len_utf8()),
            };
            if let Some(kind) = kind {
                tokens.push(Token { kind, bytes: at..at + length });
            }
            at += length;
        }
        tokens
    }
}

/// Bytes of the block comment at the start of `text`; they nest.
fn comment_length(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// Bytes of the quoted text at the start of `text`, both quotes included.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if c == '\\' && quote != '`' {
            escaped = true;
        } else if c == quote {
            return at + c.len_utf8();
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source { path: "recipe.rhai".into(), text: text.into() }
    }

    #[test]
    fn a_key_is_found_inside_its_call_only() {
        let source = source("// bins: 1\nconst A = f(#{ bins: 2 });\nconst B = g(X, #{ a: \"bins: 3)\", bins: 4 });\n");
        assert_eq!(source.find_key(Place { line: 3, column: 11 }, "bins"), Some(Place { line: 3, column: 34 }));
        assert_eq!(source.find_key(Place { line: 2, column: 11 }, "a"), None);
    }

    #[test]
    fn a_closure_among_options_is_found() {
        let text = "const R = |s| s.z < 3;\nevolve(IC, #{ stop: |s, t| s.a > 1 || s.b, o: #{ on: |x| #{ a: [x, 1] } }, r: R });";
        let source = source(text);
        let option = |key| source.option_text(Place { line: 2, column: 1 }, key);
        let at = |column| Place { line: 2, column };
        assert_eq!(option("stop"), Some(("| s , t | s . a > 1 | | s . b".into(), at(21))));
        assert_eq!(option("on"), Some(("| x | # { a : [ x , 1 ] }".into(), at(54))));
        assert!(option("r").unwrap().0.ends_with("R = | s | s . z < 3"));
        assert_eq!(option("none"), None);
    }

    #[test]
    fn a_closure_is_its_tokens_and_what_it_calls() {
        let before = "fn twice(x) { x * 2 }\nfn other(x) { x }\nmeasure(\"a\", RUN, |s, t| #{ y: twice(s.a) });";
        let text = |t: &str| {
            let source = source(t);
            let line = t.lines().position(|l| l.starts_with("measure")).unwrap() + 1;
            source.closure_text(Place { line, column: 1 }).unwrap()
        };
        let same = before.replace("other(x) { x }", "other(x) { 3 }").replace("|s, t|", "| s,t | /* note */");
        assert_eq!(text(before), text(&same));
        assert_ne!(text(before), text(&before.replace("x * 2", "x * 3")));
        assert_ne!(text(before), text(&before.replace("s.a", "s.b")));
        let by_name = "const F = |s| s.a;\nmeasure(\"a\", RUN, F);";
        assert_ne!(text(by_name), text(&by_name.replace("s.a", "s.b")));
    }
}
