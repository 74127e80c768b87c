//! The recipe's text: tokens, lines and carets, and the text of a closure for its fingerprint.
//!
//! Rhai keeps no text of a closure and no position of a map key: they are found again in the source, from where the closure
//! begins and where the function is called, which Rhai does report.

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
        self.arguments(&tokens, call)?
            .filter(|&n| {
                let token = &tokens[n];
                let name = self.text[token.bytes.clone()].trim_matches('"');
                token.kind != Kind::Symbol && name == key && self.symbol(&tokens, n + 1) == Some(":")
            })
            .map(|n| self.place(tokens[n].bytes.start))
            .next()
    }

    /// Whether the value of the option whose name stands at `key` is written out in numbers, texts, truth values and constants
    /// of the recipe.
    pub fn is_literal_option(&self, key: Place) -> bool {
        let tokens = self.tokens();
        let Some(name) = tokens.iter().position(|token| self.place(token.bytes.start) == key) else { return false };
        let text = |n: usize| &self.text[tokens[n].bytes.clone()];
        let is_constant = |word: &str| {
            (1..tokens.len()).any(|n| tokens[n].kind == Kind::Word && text(n) == word && text(n - 1) == "const")
        };
        let mut n = name + 2;
        let mut depth = 0;
        while n < tokens.len() {
            match (tokens[n].kind, text(n)) {
                (Kind::Symbol, "," | "}" | "]" | ")") if depth == 0 => return n > name + 2,
                (Kind::Symbol, "(" | "[" | "{") => depth += 1,
                (Kind::Symbol, ")" | "]" | "}") => depth -= 1,
                (Kind::Text, text) if text.starts_with('`') => return false,
                (Kind::Word, "true" | "false") => {}
                // a key of a map
                (Kind::Word, _) if self.symbol(&tokens, n + 1) == Some(":") => {}
                (Kind::Word, word) if !word.starts_with(|c: char| c.is_ascii_digit()) && !is_constant(word) => {
                    return false;
                }
                _ => {}
            }
            n += 1;
        }
        false
    }

    /// The text that the fingerprint of the closure at `place` rests on: its own, and that of every script function that it
    /// names, and so on. Comments and white space do not count.
    pub fn closure_text(&self, place: Place) -> Option<String> {
        let tokens = self.tokens();
        let start = tokens.iter().position(|token| self.place(token.bytes.start) == place)?;
        let closure = start..self.end_of_closure(&tokens, start)?;
        Some(self.text_of(&tokens, vec![closure]))
    }

    /// Whether the closure at `place`, or a function that it calls, writes a member of a map: `.name =`, `["name"]`,
    /// `set("name", …)`, or `name:` in a literal.
    pub fn makes_member(&self, place: Place, name: &str) -> bool {
        let Some(text) = self.closure_text(place) else { return false };
        let words: Vec<&str> = text.split_whitespace().collect();
        let quoted = format!("\"{name}\"");
        (0..words.len()).any(|n| {
            let before = |back: usize| n.checked_sub(back).map_or("", |at| words[at]);
            let after = |on: usize| words.get(n + on).copied().unwrap_or("");
            let is_quoted = words[n] == quoted;
            if !is_quoted && words[n] != name {
                return false;
            }
            let is_assigned = before(1) == "." && after(1) == "=" && after(2) != "=";
            let is_set = before(2) == "set" && before(1) == "(";
            let is_key = before(1) == "[" && after(1) == "]";
            after(1) == ":" || (!is_quoted && is_assigned) || (is_quoted && (is_set || is_key))
        })
    }

    /// The closure at `place` as it is written, on one line and without comments.
    pub fn closure_line(&self, place: Place) -> Option<String> {
        let tokens = self.tokens();
        let start = tokens.iter().position(|token| self.place(token.bytes.start) == place)?;
        let mut line = String::new();
        let mut end = tokens[start].bytes.start;
        for token in &tokens[start..self.end_of_closure(&tokens, start)?] {
            if token.bytes.start > end {
                line.push(' ');
            }
            line += &self.text[token.bytes.clone()];
            end = token.bytes.end;
        }
        Some(line)
    }

    /// The same of what `Fn("name")` gives: a function of the recipe, or of Rhai.
    pub fn function_text(&self, name: &str) -> String {
        let tokens = self.tokens();
        let functions = self.functions(&tokens, name);
        if functions.is_empty() { name.into() } else { self.text_of(&tokens, functions) }
    }

    /// The token after the closure whose `|` is token `start`.
    fn end_of_closure(&self, tokens: &[Token], start: usize) -> Option<usize> {
        let parameters_end = (start + 1..tokens.len()).find(|&n| self.symbol(tokens, n) == Some("|"))?;
        let mut n = parameters_end + 1;
        while n < tokens.len() {
            n = match self.symbol(tokens, n)? {
                "(" | "[" | "{" => self.closing(tokens, n)? + 1,
                ")" | "]" | "}" | "," | ";" => break,
                _ => n + 1,
            };
        }
        Some(n)
    }

    /// The text of these tokens, and of the functions that they name.
    fn text_of(&self, tokens: &[Token], mut pieces: Vec<Range<usize>>) -> String {
        let mut done = 0;
        while done < pieces.len() {
            for token in &tokens[pieces[done].clone()] {
                let text = &self.text[token.bytes.clone()];
                // a text in backquotes may hold calls
                let names: Vec<&str> = match token.kind {
                    Kind::Symbol => Vec::new(),
                    Kind::Text if text.starts_with('`') => text.split(|c| !is_word(c)).collect(),
                    Kind::Word | Kind::Text => vec![text.trim_matches('"')],
                };
                for definition in names.into_iter().flat_map(|name| self.functions(tokens, name)) {
                    if !pieces.contains(&definition) {
                        pieces.push(definition);
                    }
                }
            }
            done += 1;
        }
        let text =
            |range: Range<usize>| range.map(|n| &self.text[tokens[n].bytes.clone()]).collect::<Vec<_>>().join(" ");
        pieces.into_iter().map(text).collect::<Vec<_>>().join("\n")
    }

    /// The definitions `fn name(…) {…}` and `fn Type.name(…) {…}`, for any number of parameters, as ranges of tokens.
    fn functions(&self, tokens: &[Token], name: &str) -> Vec<Range<usize>> {
        let is = |n: usize, text: &str| tokens.get(n).is_some_and(|token| self.text[token.bytes.clone()] == *text);
        let starts = (0..tokens.len()).filter(|&n| {
            let of_type = if is(n + 2, ".") { 3 } else { 1 };
            tokens[n].kind == Kind::Word && is(n, "fn") && is(n + of_type, name)
        });
        let whole = |start: usize| {
            let open = (start..tokens.len()).find(|&n| self.symbol(tokens, n) == Some("{"))?;
            Some(start..self.closing(tokens, open)? + 1)
        };
        starts.filter_map(whole).collect()
    }

    /// The tokens between the brackets of the call whose name stands at `call`.
    fn arguments(&self, tokens: &[Token], call: Place) -> Option<Range<usize>> {
        let start = tokens.iter().position(|token| self.place(token.bytes.start) == call)?;
        let open = (start..tokens.len()).find(|&n| self.symbol(tokens, n) == Some("("))?;
        Some(open + 1..self.closing(tokens, open)?)
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
            let (kind, length) = match c {
                _ if c.is_whitespace() => (None, c.len_utf8()),
                _ if rest.starts_with("//") => (None, rest.find('\n').unwrap_or(rest.len())),
                _ if rest.starts_with("/*") => (None, comment_length(rest)),
                '"' | '`' | '\'' => (Some(Kind::Text), quoted_length(rest, c)),
                _ if is_word(c) => (Some(Kind::Word), rest.find(|c| !is_word(c)).unwrap_or(rest.len())),
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

/// Whether a character belongs to names and numbers.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
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
    fn an_option_is_literal_without_variables() {
        let text = "const MOST = 3;\nthen(P, |p| f(#{ a: -1.5, b: [1, MOST], c: p.x, d: #{ e: \"t\", f: `${p}` }, g: #{ h: true } }))";
        let source = source(text);
        let literal = |key: &str| {
            source.is_literal_option(
                source.find_key(Place { line: 2, column: 13 }, key).unwrap_or_else(|| panic!("{key}")),
            )
        };
        let found = ["a", "b", "c", "d", "e", "f", "g"].map(literal);
        assert_eq!(found, [true, true, false, false, true, false, true]);
    }

    #[test]
    fn a_closure_ends_where_the_next_thing_begins() {
        let text =
            "const R = |s| s.z < 3;\nf(#{ stop: |s, t| s.a > 1 || s.b | t, o: #{ on: |x| #{ a: [x, 1] } } }, || 2);";
        let source = source(text);
        let closure = |line, column| source.closure_text(Place { line, column });
        assert_eq!(closure(1, 11).as_deref(), Some("| s | s . z < 3"));
        assert_eq!(closure(2, 12).as_deref(), Some("| s , t | s . a > 1 | | s . b | t"));
        assert_eq!(closure(2, 49).as_deref(), Some("| x | # { a : [ x , 1 ] }"));
        assert_eq!(closure(2, 73).as_deref(), Some("| | 2"));
        assert_eq!(closure(3, 1), None);
    }

    #[test]
    fn members_that_a_closure_makes_are_found() {
        let text = "fn add(m) { m.added = 1 }\nf(|s| { let m = #{ given: 1 }; m.set = 2; m[\"key\"] = s.read; m.set(\"put\", 3); \
                    add(m); m.same == 4; m })";
        let source = source(text);
        let made = |name: &str| source.makes_member(Place { line: 2, column: 3 }, name);
        for name in ["added", "given", "set", "key", "put"] {
            assert!(made(name), "{name}");
        }
        for name in ["read", "same", "m", "none"] {
            assert!(!made(name), "{name}");
        }
    }

    #[test]
    fn a_closure_is_shown_as_it_is_written() {
        let source = source("f(|c| {\n    // dense\n    let d = c.density;\n    d > 8.5  && c.x<2\n}, 3);");
        let line = source.closure_line(Place { line: 1, column: 3 });
        assert_eq!(line.as_deref(), Some("|c| { let d = c.density; d > 8.5 && c.x<2 }"));
    }

    #[test]
    fn a_closure_is_its_tokens_and_what_it_calls() {
        let before = "fn twice(x) { x * 2 }\nfn other(x) { x }\nmeasure(\"a\", RUN, |s, t| #{ y: twice(s.a) });";
        let text = |t: &str| {
            let (line, of) = t.lines().enumerate().find(|(_, l)| l.starts_with("measure")).unwrap();
            source(t).closure_text(Place { line: line + 1, column: of.find('|').unwrap() + 1 }).unwrap()
        };
        let same = before.replace("other(x) { x }", "other(x) { 3 }").replace("|s, t|", "| s,t | /* note */");
        assert_eq!(text(before), text(&same));
        assert_ne!(text(before), text(&before.replace("x * 2", "x * 3")));
        assert_ne!(text(before), text(&before.replace("s.a", "s.b")));
        let called = before.replace("twice(s.a)", "`a: ${twice(s.a)}`");
        assert_ne!(text(&called), text(&called.replace("x * 2", "x * 3")));
        let overloaded = format!("{before}\nfn twice(x, y) {{ 1 }}\nfn int.twice() {{ 1 }}");
        assert_ne!(text(&overloaded), text(&overloaded.replace("y) { 1 }", "y) { 2 }")));
        assert_ne!(text(&overloaded), text(&overloaded.replace("() { 1 }", "() { 2 }")));
        assert_eq!(source(before).function_text("twice"), "fn twice ( x ) { x * 2 }");
        assert_eq!(source(before).function_text("sqrt"), "sqrt");
    }
}
