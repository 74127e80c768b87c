//! The names of columns in the header of a table, with the units that they state.

/// A column's name and unit, in small letters without blanks, brackets, `^`, `*` and `_`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Label {
    name: String,
    unit: String,
    /// The length in the unit.
    length: Option<Length>,
    /// As it is written.
    text: String,
}

/// A length as a unit states it: Mpc, Mpc/h and the like, to any power.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Length {
    /// `k`, `m` or `g`.
    prefix: char,
    has_h: bool,
}

/// A unit as a label states it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Unit {
    pub(super) text: String,
    /// Value of the unit in h/Mpc, or (Mpc/h)³.
    pub(super) factor: f64,
}

/// The second column of a table of a spectrum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Quantity {
    /// P(k).
    Power,
    /// Δ² = k³P/(2π²).
    Delta2,
    /// T(k).
    Transfer,
    /// The logarithm of any.
    Logarithm,
}

impl Label {
    /// The names of a header for so many columns: numbered as CLASS does, or separated by commas, semicolons, tabs, several
    /// blanks or one, where a unit in brackets belongs to the name before it.
    pub(super) fn all(header: &str, columns: usize) -> Option<Vec<Self>> {
        let split = |separator: &str| {
            let parts = header.split(separator).map(str::trim).filter(|part| !part.is_empty());
            parts.map(str::to_owned).collect::<Vec<_>>()
        };
        let ways = [",", ";", "\t", "  "].map(split);
        let ways = std::iter::once(numbered(header)).chain(ways).chain([words(header)]);
        let mut fitting = ways.filter(|names| names.len() == columns);
        fitting.next().map(|names| names.iter().map(|name| Self::new(name)).collect())
    }

    fn new(text: &str) -> Self {
        let lower = text.to_lowercase().replace('²', "2").replace('³', "3").replace('⁻', "-").replace('¹', "1");
        let in_round = || lower.find('(').filter(|at| lower[*at..].contains("pc"));
        // `k_h_mpc` and `power_mpc3_h3`
        let in_snake_case = || {
            let units = ["_h_mpc", "_hmpc", "_mpc", "_h_kpc", "_hkpc", "_kpc"];
            units.iter().find_map(|unit| lower.find(*unit))
        };
        let in_brackets = lower.find('[').or_else(|| lower.find(char::is_whitespace)).or_else(in_round);
        let cut = in_brackets.or_else(in_snake_case);
        let plain = |part: &str| {
            let left_out = |c: char| c.is_whitespace() || "()[]{}^*_$\\·".contains(c);
            part.chars().filter(|c| !left_out(*c)).collect::<String>()
        };
        let (name, unit) = lower.split_at(cut.unwrap_or(lower.len()));
        Self { name: plain(name), unit: plain(unit), length: Length::of(unit), text: text.to_owned() }
    }

    /// The name as it is written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the name is this one, brackets and blanks left aside.
    pub(super) fn is(&self, name: &str) -> bool {
        self.name == Self::new(name).name
    }

    pub(super) fn is_wave_number(&self) -> bool {
        ["k", "k/h", "kh"].contains(&self.name.as_str()) || self.name.starts_with("wavenumber")
    }

    /// Whether the column is a wave number or its logarithm.
    pub(super) fn names_wave_number(&self) -> bool {
        self.is_wave_number() || self.has_logarithm_of(&['k'])
    }

    /// The unit of a wave number in h/Mpc, if one is stated.
    pub(super) fn wave_number_unit(&self, h: f64) -> Option<Unit> {
        if self.name == "k/h" || self.name == "kh" {
            return Some(Unit { text: "h/Mpc".to_owned(), factor: 1.0 });
        }
        let length = self.length?;
        let (name, factor) = match length.prefix {
            'k' => ("kpc", 1e3),
            'g' => ("Gpc", 1e-3),
            _ => ("Mpc", 1.0),
        };
        Some(if length.has_h {
            Unit { text: format!("h/{name}"), factor }
        } else {
            Unit { text: format!("1/{name}"), factor: factor / h }
        })
    }

    /// The unit of P(k) in (Mpc/h)³, if one is stated.
    pub(super) fn power_unit(&self, h: f64) -> Option<Unit> {
        let length = self.length?;
        let (name, factor) = match length.prefix {
            'k' => ("kpc", 1e-9),
            'g' => ("Gpc", 1e9),
            _ => ("Mpc", 1.0),
        };
        Some(if length.has_h {
            Unit { text: format!("({name}/h)³"), factor }
        } else {
            Unit { text: format!("{name}³"), factor: factor * h.powi(3) }
        })
    }

    /// Name and unit, as in `k^3 P(k)`.
    fn whole(&self) -> String {
        format!("{}{}", self.name, self.unit)
    }

    /// Whether the column is the logarithm of a quantity that begins with one of these letters.
    fn has_logarithm_of(&self, letters: &[char]) -> bool {
        let whole = self.whole();
        let argument = ["log10", "log", "lg", "ln"].iter().find_map(|name| whole.strip_prefix(*name));
        argument.is_some_and(|argument| argument.starts_with(letters))
    }

    /// Whether the name is P, Pk, P(k), P_… or power….
    fn is_power(&self) -> bool {
        let lower = self.text.to_lowercase();
        let Some(rest) = lower.trim_start_matches(|c: char| !c.is_alphabetic()).strip_prefix('p') else { return false };
        rest.starts_with("ower") || !rest.strip_prefix('k').unwrap_or(rest).starts_with(char::is_alphabetic)
    }

    /// Whether transfer tables of CAMB or CLASS have a column of this name.
    pub(super) fn is_of_transfer_table(&self) -> bool {
        let lower = self.text.to_lowercase();
        let of_species = ["d_", "t_", "-t_", "v_"].iter().any(|start| lower.starts_with(*start));
        let names = [
            "cdm", "baryon", "baryons", "photon", "photons", "nu", "massnu", "nonu", "total", "totalde", "weyl", "phi",
            "psi",
        ];
        of_species || names.contains(&self.name.as_str())
    }

    /// The quantity of a column beside the wave number, if its name is known.
    pub(super) fn quantity(&self) -> Option<Quantity> {
        let whole = self.whole();
        let begins = |names: &[&str]| names.iter().any(|name| whole.starts_with(name));
        if self.has_logarithm_of(&['k', 'p', 't', 'd', 'δ']) {
            Some(Quantity::Logarithm)
        } else if begins(&["delta2", "δ2", "d2", "k3p", "dimensionless"]) {
            Some(Quantity::Delta2)
        } else if self.is_power() {
            Some(Quantity::Power)
        } else if ["t", "tk"].contains(&self.name.as_str()) || begins(&["transfer"]) {
            Some(Quantity::Transfer)
        } else {
            None
        }
    }
}

impl Length {
    /// The first length of a text in small letters, with `h` beside it as in `h/mpc`, `hmpc-1`, `h^-3 mpc^3` and `mpc3_h3`.
    fn of(text: &str) -> Option<Self> {
        // blanks of LaTeX
        let text = text.replace("\\,", " ").replace("\\;", " ").replace("\\:", " ");
        let spaced: String = text
            .chars()
            .map(|c| match c {
                '[' | ']' | ',' | ';' | ':' | '=' => format!(" {c} "),
                c if c.is_alphabetic() => c.to_string(),
                _ => " ".to_owned(),
            })
            .collect();
        // which may stand between h and the length
        let is_filler =
            |word: &str| matches!(word, "per" | "inverse" | "comoving" | "rm" | "mathrm" | "text" | "textrm");
        let words: Vec<&str> = spaced.split_whitespace().filter(|word| !is_filler(word)).collect();
        let is = |n: usize, wanted: &str| words.get(n).is_some_and(|word| *word == wanted);
        words.iter().enumerate().find_map(|(n, word)| {
            let (before, after) = word.split_once("pc")?;
            let (begins_with_h, before) = match before.strip_prefix('h') {
                Some(rest) => (true, rest),
                None => (false, before),
            };
            // `cmpc`: comoving
            let prefix = match before.strip_prefix('c').unwrap_or(before) {
                "k" => 'k',
                "m" => 'm',
                "g" => 'g',
                _ => return None,
            };
            let ends_with_h = match after {
                "" | "s" => false,
                "h" => true,
                _ => return None,
            };
            let follows_h = n > 0 && is(n - 1, "h");
            let precedes_h = is(n + 1, "h") && !is(n + 2, "=");
            Some(Self { prefix, has_h: begins_with_h || ends_with_h || follows_h || precedes_h })
        })
    }
}

/// The names of `1:k (h/Mpc)  2:d_g  3:d_b`.
fn numbered(header: &str) -> Vec<String> {
    let parts: Vec<&str> = header.split(':').skip(1).collect();
    let name = |(n, part): (usize, &&str)| {
        let part = part.trim();
        // each but the last is followed by the next one's number
        let is_last = n + 1 == parts.len();
        if is_last { part.to_owned() } else { part.trim_end_matches(|c: char| c.is_ascii_digit()).trim().to_owned() }
    };
    parts.iter().enumerate().map(name).collect()
}

/// Words, each with the brackets that follow it.
fn words(header: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut open = 0_usize;
    for word in header.split_whitespace() {
        match names.last_mut() {
            Some(name) if open > 0 || word.starts_with(['(', '[']) => *name += &format!(" {word}"),
            _ => names.push(word.into()),
        }
        open = (open + word.matches(['(', '[']).count()).saturating_sub(word.matches([')', ']']).count());
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units of k and P, in h = 0.5, and the second column's quantity.
    #[test]
    fn headers_state_units_and_quantities() {
        let (h, per_mpc) = (0.5, (Some(2.0), Some(0.125)));
        let (comoving, nothing) = ((Some(1.0), Some(1.0)), (None, None));
        for (header, (k, p), quantity) in [
            ("k P", nothing, Quantity::Power),
            ("k [h/Mpc] P [(Mpc/h)^3]", comoving, Quantity::Power),
            ("k [1/Mpc] P [Mpc^3]", per_mpc, Quantity::Power),
            ("   1:k (h/Mpc)              2:P (Mpc/h)^3", comoving, Quantity::Power),
            ("k (1/Mpc), P(k) (Mpc^3)", per_mpc, Quantity::Power),
            ("k[Mpc^-1]  P(k)[Mpc^{3}]", per_mpc, Quantity::Power),
            ("k [h Mpc⁻¹]\tP [h⁻³ Mpc³]", comoving, Quantity::Power),
            ("k/h P", (Some(1.0), None), Quantity::Power),
            ("k_h_mpc,power_mpc3_h3", comoving, Quantity::Power),
            ("k in 1/Mpc, P in Mpc**3", per_mpc, Quantity::Power),
            ("wavenumber k [h/kpc]; P_lin [(kpc/h)^3]", (Some(1e3), Some(1e-9)), Quantity::Power),
            ("k_h_kpc,p_kpc3_h3", (Some(1e3), Some(1e-9)), Quantity::Power),
            ("k [1/Mpc] (physical), P [Mpc^3] (h = 0.7)", per_mpc, Quantity::Power),
            ("k in the unit 1/Mpc, P in Mpc^3", per_mpc, Quantity::Power),
            ("k (1/Mpc, with h)\tP (Mpc^3, the other has no h)", per_mpc, Quantity::Power),
            ("k [hMpc^-1]  P [h^-3Mpc^3]", comoving, Quantity::Power),
            ("k [h {\\rm Mpc}^{-1}]  P [{\\rm Mpc}^3 h^{-3}]", comoving, Quantity::Power),
            ("k [$h\\,\\mathrm{Mpc}^{-1}$]  P [$h^{-3}\\,\\mathrm{Mpc}^3$]", comoving, Quantity::Power),
            ("k [1/Mpc] P [Mpc^3/h^3]", (Some(2.0), Some(1.0)), Quantity::Power),
            ("k [h per cMpc]; Pk [(h^-1 kpc)^3]", (Some(1.0), Some(1e-9)), Quantity::Power),
            ("k [1/Gpc] power [Gpc^3]", (Some(2e-3), Some(1.25e8)), Quantity::Power),
            ("wave_number_h_mpc p_mpc3_h3", comoving, Quantity::Power),
            ("k [h/Mpc] Delta^2", (Some(1.0), None), Quantity::Delta2),
            ("k [1/Mpc], k^3 P(k)/(2 pi^2)", (Some(2.0), None), Quantity::Delta2),
            ("k Δ²", nothing, Quantity::Delta2),
            ("k T(k)", nothing, Quantity::Transfer),
            ("k log10(P)", nothing, Quantity::Logarithm),
        ] {
            let labels = Label::all(header, 2).expect(header);
            assert!(labels[0].is_wave_number(), "{header}: {labels:?}");
            let factor = |unit: Option<Unit>| unit.map(|unit| unit.factor);
            assert_eq!(factor(labels[0].wave_number_unit(h)), k, "{header}: {labels:?}");
            assert_eq!(factor(labels[1].power_unit(h)), p, "{header}: {labels:?}");
            assert_eq!(labels[1].quantity(), Some(quantity), "{header}: {labels:?}");
        }
        let of_class = Label::all("1:k (h/Mpc)  2:-T_cdm/k2 3:-T_tot/k2", 3).unwrap();
        assert!(of_class[0].is_wave_number() && of_class[1].is("-T_cdm/k2") && of_class[2].is("-T_tot/k2"));
        assert!(Label::all("a linear spectrum of mine", 2).is_none());
        assert!(!Label::all("linear spectrum", 2).unwrap()[0].is_wave_number());
        assert_eq!(Label::all("log10(k) log10(P)", 2).unwrap()[0].quantity(), Some(Quantity::Logarithm));
    }

    /// A name with the letter P is not P(k) for that.
    #[test]
    fn power_is_told_from_transfer_functions() {
        for name in ["P", "Pk", "P(k)", "P_lin", "pk_lin", "P_cdm+baryon", "P(k) [Mpc^3]", "$P(k)$", "Power spectrum"] {
            let label = Label::new(name);
            assert_eq!((label.quantity(), label.is_of_transfer_table()), (Some(Quantity::Power), false), "{name}");
        }
        for name in ["phi", "psi", "photon", "d_m", "d_ncdm[0]", "t_b", "v_CDM", "CDM", "mass_nu", "total", "-T_tot/k2"]
        {
            let label = Label::new(name);
            assert_eq!((label.quantity(), label.is_of_transfer_table()), (None, true), "{name}");
        }
        for name in ["k", "z", "S(k)", "pressure", "particles"] {
            let label = Label::new(name);
            assert_eq!((label.quantity(), label.is_of_transfer_table()), (None, false), "{name}");
        }
    }
}
