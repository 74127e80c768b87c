//! Tables of numbers in text files, as CAMB, CLASS, numpy and spreadsheets write them.
//!
//! Columns are separated by blanks, tabs, commas or semicolons. `#`, `!` and `%` begin a comment, also behind numbers. The
//! header is the last comment before the numbers, or a first line of words, that has as many names as there are columns and
//! names a wave number.

use super::label::Label;
use crate::error::IcError;
use std::path::{Path, PathBuf};

/// A table with its comments and the lines that its rows stand in.
pub(super) struct TextTable {
    path: PathBuf,
    text: String,
    /// Comments above the first row, each with its line, counted from 1.
    comments: Vec<(usize, String)>,
    /// At least three, all of one length.
    pub(super) rows: Vec<Row>,
}

/// Numbers of a line.
pub(super) struct Row {
    /// Line of the file, counted from 1.
    pub(super) line: usize,
    pub(super) values: Vec<f64>,
}

/// Rows that a spline needs.
const FEWEST_ROWS: usize = 3;

/// Characters of a line that an error shows.
const SHOWN: usize = 80;

impl TextTable {
    /// Reads a file.
    ///
    /// # Errors
    /// [`IcError::Io`]; [`IcError::TableLine`] for a row that cannot be read; [`IcError::Content`] for a file without rows.
    pub(super) fn read(path: &Path) -> Result<Self, IcError> {
        let bytes = std::fs::read(path).map_err(|source| IcError::Io { path: path.into(), source })?;
        // a comment may be in another encoding than UTF-8, a line may end with a carriage return alone
        let text = String::from_utf8_lossy(&bytes).trim_start_matches('\u{feff}').replace("\r\n", "\n");
        let text = text.replace('\r', "\n");
        let mut table = Self { path: path.into(), text, comments: Vec::new(), rows: Vec::new() };
        if bytes.contains(&0) {
            return Err(table.wrong("the file holds zero bytes and is no text; save the table as plain text (UTF-8)"));
        }
        table.take_lines()?;
        if table.rows.len() < FEWEST_ROWS {
            let reason = format!("{} rows of numbers, but a spectrum needs at least {FEWEST_ROWS}", table.rows.len());
            return Err(table.wrong(reason));
        }
        Ok(table)
    }

    fn take_lines(&mut self) -> Result<(), IcError> {
        let mut may_be_header = true;
        for (n, line) in self.text.lines().enumerate() {
            let (numbers, comment) = line.split_at(line.find(['#', '!', '%']).unwrap_or(line.len()));
            let words = || numbers.split(|c: char| c.is_whitespace() || c == ',' || c == ';').filter(|w| !w.is_empty());
            let has_no_number = words().all(|word| number(word).is_none());
            if self.rows.is_empty() && has_no_number && !comment.is_empty() {
                let is_mark = |c: char| c.is_whitespace() || ['#', '!', '%'].contains(&c);
                self.comments.push((n + 1, comment.trim_matches(is_mark).to_owned()));
            }
            if words().next().is_none() {
                continue;
            }
            if std::mem::take(&mut may_be_header) && has_no_number {
                self.comments.push((n + 1, numbers.trim().to_owned()));
                continue;
            }
            let values = words()
                .map(|word| number(word).ok_or_else(|| self.wrong_line(n + 1, format!("\"{word}\" is not a number"))))
                .collect::<Result<Vec<f64>, IcError>>()?;
            if let Some(first) = self.rows.first().filter(|first| first.values.len() != values.len()) {
                let (found, expected) = (values.len(), first.values.len());
                return Err(self.wrong_line(n + 1, format!("{found} columns, {expected} in line {}", first.line)));
            }
            self.rows.push(Row { line: n + 1, values });
        }
        Ok(())
    }

    /// Columns of each row.
    pub(super) fn columns(&self) -> usize {
        self.rows[0].values.len()
    }

    /// The header's names of the columns, a wave number among them, with its line. Other comments may have as many words as the
    /// table has columns.
    pub(super) fn labels(&self) -> Option<(usize, Vec<Label>)> {
        let of = |(line, text): &(usize, String)| {
            let names = Label::all(text, self.columns())?;
            let is_header = names.iter().any(Label::names_wave_number);
            is_header.then_some((*line, names))
        };
        self.comments.iter().rev().find_map(of)
    }

    /// The redshift that comments state as `z=…`, with the line; `None` where they state several.
    pub(super) fn redshift(&self) -> Option<(usize, f64)> {
        let stated = |(line, text): &(usize, String)| {
            let values = text.match_indices("z=").filter_map(|(at, _)| {
                let digits = text[at + 2..].trim_start();
                let end = digits.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(digits.len());
                digits[..end].trim_end_matches('.').parse::<f64>().ok()
            });
            values.map(|z| (*line, z)).collect::<Vec<_>>()
        };
        let all: Vec<(usize, f64)> = self.comments.iter().flat_map(stated).collect();
        let first = *all.first()?;
        all.iter().all(|(_, z)| *z == first.1).then_some(first)
    }

    /// An error about the whole table.
    pub(super) fn wrong(&self, reason: impl Into<String>) -> IcError {
        IcError::Content { path: self.path.clone(), reason: reason.into() }
    }

    /// An error about a line.
    pub(super) fn wrong_line(&self, line: usize, reason: impl Into<String>) -> IcError {
        let text = self.text.lines().nth(line - 1).unwrap_or_default();
        let text = text.trim().chars().take(SHOWN).collect();
        IcError::TableLine { path: self.path.clone(), line, reason: reason.into(), text }
    }
}

/// A number, also with Fortran's exponents: `1.0D-03`, `1.0-103`.
fn number(word: &str) -> Option<f64> {
    let plain = word.replace(['d', 'D'], "e");
    plain.parse().ok().or_else(|| {
        let follows_digit = |at: &usize| plain[..*at].ends_with(|c: char| c.is_ascii_digit() || c == '.');
        let sign = plain.rfind(['+', '-']).filter(follows_digit)?;
        format!("{}e{}", &plain[..sign], &plain[sign..]).parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &[u8]) -> Result<TextTable, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.dat");
        std::fs::write(&path, text).unwrap();
        TextTable::read(&path).map_err(|error| error.to_string().rsplit_once("rows.dat").unwrap().1.to_owned())
    }

    fn read(text: &[u8]) -> Result<Vec<Vec<f64>>, String> {
        Ok(table(text)?.rows.into_iter().map(|row| row.values).collect())
    }

    /// One table in the ways of editors, spreadsheets and Fortran.
    #[test]
    fn one_table_is_written_in_many_ways() {
        let rows = vec![vec![1e-4, 2.0], vec![1.0, 3e-103], vec![10.0, -5.0]];
        let ways: [&[u8]; 9] = [
            b"# k P\n1e-4 2\n1 3e-103\n10 -5\n",
            b"# k P\n\n1e-4 2 # bump\n1 3e-103 ! peak\n  # between\n10 -5",
            b"\xef\xbb\xbf# k P\r\n1e-4\t2\r\n1\t3e-103\r\n10\t-5\r\n",
            b"k,P\n1e-4,2\n1, 3e-103\n10,-5\n",
            b"k;P\n1e-4;2\n1;3e-103\n10;-5\n",
            b"! k P\n 1.0D-04 2.0d0\n 1.0D+00 3.0-103\n .1E+02 -.5D1\n",
            b"# k P\r1e-4 2\r1 3e-103\r10 -5\r",
            b"# \xb2 in Latin-1\n1e-4 2\n1 3e-103\n10 -5\n",
            b"% k P\n1e-4 2 % of Octave\n1 3e-103\n10 -5\n",
        ];
        for way in ways {
            assert_eq!(read(way).as_ref(), Ok(&rows), "{}", String::from_utf8_lossy(way));
        }
    }

    /// Line and first name of the header.
    #[test]
    fn the_last_comment_above_the_numbers_that_names_a_wave_number_is_the_header() {
        let rest = "1e-4 2\n1 3\n10 4\n";
        for (top, expected) in [
            ("# k [1/Mpc] P [Mpc^3]\n# from CLASS\n", Some((1, "k [1/Mpc]"))),
            ("# from CLASS\n# k P\n#\n# k [1/Mpc] P [Mpc^3]\n", Some((4, "k [1/Mpc]"))),
            ("# k [1/Mpc] P [Mpc^3]\n1e-5 2 # k regime\n", Some((1, "k [1/Mpc]"))),
            ("# log10(k) log10(P)\n# from CLASS\n", Some((1, "log10(k)"))),
            ("## k [1/Mpc] P [Mpc^3]\n", Some((1, "k [1/Mpc]"))),
            ("#! % k [1/Mpc] P [Mpc^3] ##\n", Some((1, "k [1/Mpc]"))),
            ("k P # of CAMB\n", Some((1, "k"))),
            ("# from CLASS\n", None),
            ("1e-5 2 # k P\n", None),
        ] {
            let labels = table(format!("{top}{rest}").as_bytes()).unwrap().labels();
            let found = labels.as_ref().map(|(line, names)| (*line, names[0].text()));
            assert_eq!(found, expected, "{top}");
        }
    }

    #[test]
    fn a_wrong_row_is_named_with_its_line_and_text() {
        let says = |text: &[u8], expected: &str| assert_eq!(read(text).unwrap_err(), expected);
        says(b"", ": 0 rows of numbers, but a spectrum needs at least 3");
        says(b"# k P\n1e-4 1\n1 2\n", ": 2 rows of numbers, but a spectrum needs at least 3");
        says(b"# k P\n1e-4 1\n1 two # 2\n10 3\n", ", line 3: \"two\" is not a number, in \"1 two # 2\"");
        says(b"1e-4 1\r\n\r\n1 2 3\r\n", ", line 3: 3 columns, 2 in line 1, in \"1 2 3\"");
        says(b"k P\nalso words\n1e-4 1\n", ", line 2: \"also\" is not a number, in \"also words\"");
        says(
            b"\xff\xfe1\x00 \x002\x00\n\x00",
            ": the file holds zero bytes and is no text; save the table as plain text (UTF-8)",
        );
    }
}
