//! What the two fuzz tests share: dice, mutations of texts, processes that may end in any way, and counts of how they did.

use std::collections::BTreeMap;
use std::io::{Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How many inputs are tried: `COMOVE_FUZZ`, or a few hundred.
pub(crate) fn wanted() -> u64 {
    std::env::var("COMOVE_FUZZ").map_or(200, |text| text.parse().expect("COMOVE_FUZZ: a number"))
}

/// What a campaign says of work that did not hear it was to stop.
pub(crate) const CUT_SHORT: &str = "the work in progress is stopped at once";

/// Numbers that look random; those of one seed are the same every time (SplitMix64).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// One of these.
    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// Does `task` for every number below `count`, on as many threads as there are cores.
pub(crate) fn in_parallel(count: u64, task: impl Fn(u64) + Sync) {
    let next = AtomicU64::new(0);
    let work = || loop {
        let n = next.fetch_add(1, Ordering::Relaxed);
        if n >= count {
            break;
        }
        task(n);
    };
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| (0..threads).for_each(|_| _ = scope.spawn(work)));
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    With(i32),
    BySignal(i32),
    NotInTime,
}

/// A process that ends for want of memory long before the machine does: 8 GiB, of which scripts set aside some for stacks.
pub(crate) fn limited(program: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 8388608; exec \"$0\" \"$@\""]).arg(program);
    command
}

/// Runs a process for so long at most: how it ended, and all that it said.
pub(crate) fn run(command: &mut Command, limit: Duration) -> (Ended, String) {
    let mut said = tempfile::tempfile().unwrap();
    command.stdout(said.try_clone().unwrap()).stderr(said.try_clone().unwrap());
    let (mut child, began) = (command.spawn().unwrap(), Instant::now());
    let ended = loop {
        match child.try_wait().unwrap() {
            Some(status) => {
                break status.code().map_or_else(|| Ended::BySignal(status.signal().unwrap()), Ended::With);
            }
            None if began.elapsed() > limit => {
                child.kill().unwrap();
                child.wait().unwrap();
                break Ended::NotInTime;
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let mut bytes = Vec::new();
    said.rewind().unwrap();
    said.read_to_end(&mut bytes).unwrap();
    (ended, String::from_utf8_lossy(&bytes).into_owned())
}

/// Prints counts, the largest first.
pub(crate) fn print(title: &str, counts: &BTreeMap<String, u64>) {
    let mut counts: Vec<(&String, &u64)> = counts.iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    println!("{title}:");
    counts.iter().for_each(|(what, count)| println!("{count:>7}  {what}"));
}

/// What may stand in the place of a number.
const NUMBERS: &str = "0 -1 1 2 0.0 -0.0 0.5 -1e308 1e308 1e309 1e-320 1e16 9223372036854775807 9223372036854775808 \
                       -9223372036854775808 18446744073709551615 4294967296 1000 255 64 40 (0.0/0.0) []";
/// What may stand in the place of a text.
const TEXTS: &str = "\"\" \"../outside\" \"/dev/zero\" \"a/b\" \"\\u0000\" \"\u{202e}κ\" \"all\" \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"";
/// Words of the language.
const KEYWORDS: [&str; 12] =
    ["const", "let", "fn", "if", "else", "for", "in", "while", "loop", "return", "true", "false"];
const BRACKETS: [&str; 8] = ["(", ")", "[", "]", "{", "}", "#{", "|"];

/// A text in pieces: words, numbers, texts in quotes, comments, blanks, and single signs.
pub(crate) fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let run = |belongs: &dyn Fn(char) -> bool| rest.find(|c: char| !belongs(c)).unwrap_or(rest.len());
        let length = match first {
            c if c.is_whitespace() => run(&char::is_whitespace),
            c if c.is_alphabetic() || c == '_' => run(&|c| c.is_alphanumeric() || c == '_'),
            c if c.is_ascii_digit() => {
                let end = run(&|c| c.is_alphanumeric() || c == '.' || c == '_');
                let exponent = rest[..end].ends_with('e') && rest[end..].starts_with('-');
                if exponent { end + 1 + rest[end + 1..].find(|c: char| !c.is_ascii_digit()).unwrap_or(0) } else { end }
            }
            '"' => {
                let mut escaped = false;
                let end = rest.char_indices().skip(1).find(|&(_, c)| {
                    let ends = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    ends
                });
                end.map_or(rest.len(), |(at, _)| at + 1)
            }
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '#' if rest.starts_with("#{") => 2,
            c => c.len_utf8(),
        };
        tokens.push(rest[..length].to_owned());
        rest = &rest[length..];
    }
    tokens
}

/// The text with changes, some of them pieces of another text: half of the time a few that leave its structure as it is.
pub(crate) fn mutated(text: &[String], other: &[String], dice: &mut Dice) -> String {
    let mut tokens = text.to_vec();
    if dice.below(2) == 0 {
        (0..1 + dice.below(2)).for_each(|_| exchange(&mut tokens, other, dice));
    } else {
        (0..1 + dice.below(3)).for_each(|_| restructure(&mut tokens, other, dice));
    }
    tokens.concat()
}

/// The places of tokens that decide something and are of a kind.
fn places(tokens: &[String], kind: impl Fn(usize, char) -> bool) -> Vec<usize> {
    let first = |n: usize| tokens[n].chars().next().filter(|c| !c.is_whitespace() && !tokens[n].starts_with("//"));
    (0..tokens.len()).filter(|&n| first(n).is_some_and(|c| kind(n, c))).collect()
}

/// Words in one role: 0 options, before a colon; 1 methods and properties, after a point; 2 others.
fn words(tokens: &[String], role: usize) -> Vec<usize> {
    let is = |n: Option<usize>, sign: &str| n.and_then(|n| tokens.get(n)).is_some_and(|token| token == sign);
    places(tokens, |n, c| {
        let of = if is(Some(n + 1), ":") {
            0
        } else if is(n.checked_sub(1), ".") {
            1
        } else {
            2
        };
        (c.is_alphabetic() || c == '_') && of == role && !KEYWORDS.contains(&&*tokens[n])
    })
}

/// Puts a value or a word in the place of another.
fn exchange(tokens: &mut [String], other: &[String], dice: &mut Dice) {
    let (role, kind) = (dice.below(3), dice.below(5));
    let (from, with): (Vec<usize>, Vec<String>) = match kind {
        0 | 1 => (words(tokens, role), words(other, role).into_iter().map(|n| other[n].clone()).collect()),
        2 => (places(tokens, |_, c| c == '"'), TEXTS.split(' ').map(String::from).collect()),
        _ => (places(tokens, |_, c| c.is_ascii_digit()), NUMBERS.split(' ').map(String::from).collect()),
    };
    if !from.is_empty() && !with.is_empty() {
        tokens[*dice.pick::<usize>(&from)] = dice.pick::<String>(&with).clone();
    }
}

/// Drops, swaps, doubles or takes from elsewhere a piece of a text.
fn restructure(tokens: &mut Vec<String>, other: &[String], dice: &mut Dice) {
    let all = places(tokens, |_, _| true);
    if all.is_empty() {
        return tokens.push((*dice.pick(&BRACKETS)).to_owned());
    }
    let (at, length) = (*dice.pick::<usize>(&all), 1 + dice.below(24));
    let end = (at + length).min(tokens.len());
    match dice.below(7) {
        0 => _ = tokens.remove(at),
        1 => tokens.swap(at, *dice.pick::<usize>(&all)),
        2 => {
            let piece = tokens[at..end].to_vec();
            tokens.splice(at..at, piece);
        }
        3 => {
            let from = dice.below(other.len());
            let piece = other[from..(from + length).min(other.len())].to_vec();
            tokens.splice(at..(at + dice.below(24)).min(tokens.len()), piece);
        }
        4 => tokens.insert(at, (*dice.pick(&BRACKETS)).to_owned()),
        5 => _ = tokens.drain(at..end),
        _ => exchange(tokens, other, dice),
    }
}
