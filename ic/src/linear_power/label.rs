//! The names of columns in the header of a table, with the units that they state.

/// A column's name and unit, in small letters without blanks, brackets, `^`, `*` and `_`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Label {
    name: String,
    unit: String,
    /// As it is written.
    text: String,
}

/// A unit as a label states it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Unit {
    pub(super) text: &'static str,
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
        let cut = lower.find('[').or_else(|| lower.find(char::is_whitespace)).or_else(in_round);
        let plain = |part: &str| {
            let left_out = |c: char| c.is_whitespace() || "()[]{}^*_$\\·".contains(c);
            part.chars().filter(|c| !left_out(*c)).collect::<String>()
        };
        let (name, unit) = lower.split_at(cut.unwrap_or(lower.len()));
        let (mut name, mut unit) = (plain(name), plain(unit));
        // `k_h_mpc` and `power_mpc3_h3`
        if let (Some(at), true) = (name.find("hmpc").or_else(|| name.find("mpc")), unit.is_empty()) {
            unit = name.split_off(at);
        }
        Self { name, unit, text: text.to_owned() }
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

    /// The unit of a wave number in h/Mpc, if one is stated.
    pub(super) fn wave_number_unit(&self, h: f64) -> Option<Unit> {
        if self.name == "k/h" || self.name == "kh" {
            return Some(Unit { text: "h/Mpc", factor: 1.0 });
        }
        self.length()?;
        Some(match (self.unit.contains('h'), self.unit.contains("kpc")) {
            (true, false) => Unit { text: "h/Mpc", factor: 1.0 },
            (false, false) => Unit { text: "1/Mpc", factor: 1.0 / h },
            (true, true) => Unit { text: "h/kpc", factor: 1e3 },
            (false, true) => Unit { text: "1/kpc", factor: 1e3 / h },
        })
    }

    /// The unit of P(k) in (Mpc/h)³, if one is stated.
    pub(super) fn power_unit(&self, h: f64) -> Option<Unit> {
        self.length()?;
        Some(match (self.unit.contains('h'), self.unit.contains("kpc")) {
            (true, false) => Unit { text: "(Mpc/h)³", factor: 1.0 },
            (false, false) => Unit { text: "Mpc³", factor: h.powi(3) },
            (true, true) => Unit { text: "(kpc/h)³", factor: 1e-9 },
            (false, true) => Unit { text: "kpc³", factor: 1e-9 * h.powi(3) },
        })
    }

    fn length(&self) -> Option<()> {
        self.unit.contains("pc").then_some(())
    }

    /// The quantity of a column beside the wave number, if its name is known.
    pub(super) fn quantity(&self) -> Option<Quantity> {
        let whole = format!("{}{}", self.name, self.unit);
        let begins = |names: &[&str]| names.iter().any(|name| whole.starts_with(name));
        let logarithm = ["log10", "log", "lg", "ln"].iter().find_map(|name| whole.strip_prefix(name));
        if logarithm.is_some_and(|of| of.starts_with(['k', 'p', 't', 'd', 'δ'])) {
            Some(Quantity::Logarithm)
        } else if begins(&["delta2", "δ2", "d2", "k3p", "dimensionless"]) {
            Some(Quantity::Delta2)
        } else if begins(&["p"]) {
            Some(Quantity::Power)
        } else if ["t", "tk"].contains(&self.name.as_str()) || begins(&["transfer"]) {
            Some(Quantity::Transfer)
        } else {
            None
        }
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
}
