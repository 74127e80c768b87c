//! The field against its definition: modes by direct sums, spectrum and variance against P(k).

use super::*;
use crate::linear_power::PowerSource;
use comove_sim::Cosmology;
use comove_sim::parallel::on_ranks;

fn power() -> LinearPower {
    LinearPower::new(&PowerSource::EisensteinHu, &Cosmology::flat(0.7, 0.3, 0.045, 0.9, 1.0)).unwrap()
}

fn noise(seed: u64) -> WhiteNoise {
    WhiteNoise { seed, fixed_amplitude: false, inverted: false }
}

/// A field's mode by the definition: Σ f(x) e^(−ik·x)/N³ over cell centres.
fn mode(field: &[f64], cells: [usize; 3], n: [i64; 3]) -> Complex<f64> {
    let phase = |a: usize, i: usize| -2.0 * PI * n[a] as f64 * (i as f64 + 0.5) / cells[a] as f64;
    let mut sum = Complex::ZERO;
    for (index, value) in field.iter().enumerate() {
        let (i, j, k) = (index % cells[0], index / cells[0] % cells[1], index / (cells[0] * cells[1]));
        sum += Complex::from_polar(*value, phase(0, i) + phase(1, j) + phase(2, k));
    }
    sum / field.len() as f64
}

const WAVES: [[i64; 3]; 6] = [[1, 0, 0], [0, -2, 0], [0, 3, -1], [5, -7, 2], [0, 0, 4], [-6, 6, 7]];

#[test]
fn modes_do_not_depend_on_resolution_or_shape() {
    let coarse = LinearModes::new(&Communicator::alone(), [16; 3], 50.0, &noise(7), &power(), 1.0).density_contrast();
    let fine = LinearModes::new(&Communicator::alone(), [32; 3], 50.0, &noise(7), &power(), 1.0).density_contrast();
    let other = LinearModes::new(&Communicator::alone(), [32; 3], 50.0, &noise(8), &power(), 1.0).density_contrast();
    for n in WAVES {
        let (a, b) = (mode(&coarse, [16; 3], n), mode(&fine, [32; 3], n));
        assert!((a - b).norm() < 1e-13 && a.norm() > 1e-4, "{n:?}: {a} {b}");
        assert!((a - mode(&other, [32; 3], n)).norm() > 1e-4);
    }
    // a mesh of another shape is another box, but its mode (0, 3, −1) is drawn from the same numbers
    let long =
        LinearModes::new(&Communicator::alone(), [16, 32, 16], 50.0, &noise(7), &power(), 1.0).density_contrast();
    let (a, b) = (mode(&coarse, [16; 3], [0, 3, -1]), mode(&long, [16, 32, 16], [0, 3, -1]));
    assert!((a.arg() - b.arg()).abs() < 1e-10, "{a} {b}");
}

/// Every mode of the real field is √(P/V) times the number drawn for it, on either half of Fourier space.
#[test]
fn modes_are_those_drawn() {
    let (cells, box_mpc_h) = ([16; 3], 50.0);
    let field = LinearModes::new(&Communicator::alone(), cells, box_mpc_h, &noise(7), &power(), 0.5).density_contrast();
    for n in WAVES {
        let drawn = |[nx, ny, nz]: [i64; 3]| {
            let mut row = vec![Complex::ZERO; nx as usize + 1];
            noise(7).fill(ny, nz, &mut row);
            row[nx as usize]
        };
        let white = if n[0] >= 0 { drawn(n) } else { drawn(n.map(|n| -n)).conj() };
        let k = norm(wave_vector(n, [2.0 * PI / box_mpc_h; 3]));
        let expected = white * 0.5 * (power().at(k) / 50f64.powi(3)).sqrt();
        assert!((mode(&field, cells, n) - expected).norm() < 1e-14 && expected.norm() > 1e-4, "{n:?}");
    }
}

/// Of δ = a cos kx comes f_NL α(2k) (a/α(k))²/2 cos 2kx, of crossed waves their sum and difference; with k = 6 on 16 cells the mesh
/// lacks the second, which would fold onto 4.
#[test]
fn non_gaussianity_squares_the_potential() {
    let (cells, alone, f_nl) = ([16; 3], Communicator::alone(), 3.0);
    let alpha = |k: f64| 0.7 * k * k / (1.0 + k);
    let place = |n: usize| 2.0 * PI * (n as f64 + 0.5) / 16.0;
    let cell = |n: usize| [place(n % 16), place(n / 16 % 16), place(n / 256)];
    for (k, kept) in [(3.0_f64, 1.0), (6.0, 0.0)] {
        let contrast: Vec<f64> = (0..4096).map(|n| 0.2 * (k * cell(n)[0]).cos() + 0.1 * cell(n)[1].cos()).collect();
        let modes = LinearModes::zero(&alone, cells, 2.0 * PI).of_product(&contrast).non_gaussian(f_nl, alpha);
        let (one, other) = (0.2 / alpha(k), 0.1 / alpha(1.0));
        let wave = |size: f64, k: f64, phase: f64| f_nl * size * alpha(k) * phase.cos();
        for (n, (before, after)) in contrast.iter().zip(modes.density_contrast()).enumerate() {
            let [x, y, _] = cell(n);
            let crossed = (k * k + 1.0).sqrt();
            let expected = before
                + kept * wave(0.5 * one * one, 2.0 * k, 2.0 * k * x)
                + wave(0.5 * other * other, 2.0, 2.0 * y)
                + wave(one * other, crossed, k * x + y)
                + wave(one * other, crossed, k * x - y);
            assert!((after - expected).abs() < 1e-14, "k = {k}: {after} and not {expected}");
        }
    }
}

#[test]
fn the_field_does_not_depend_on_threads() {
    let field = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let alone = Communicator::alone();
            let modes = LinearModes::new(&alone, [16, 24, 32], 50.0, &noise(7), &power(), 1.0);
            (modes.density_contrast(), modes.velocity(1, 0.5))
        })
    };
    assert_eq!(field(1), field(3));
}

/// Uneven axes, more ranks than rows or planes, and parts of planes that go one after the other.
#[test]
fn the_field_does_not_depend_on_ranks() {
    let fields = |modes: &LinearModes<'_>| [modes.density_contrast(), modes.velocity(2, 0.5)];
    for (cells, fixed_amplitude) in [([32, 16, 48], false), ([16, 48, 6], true), ([8, 2, 64], false)] {
        let noise = WhiteNoise { seed: 7, fixed_amplitude, inverted: false };
        let alone = Communicator::alone();
        let whole = fields(&LinearModes::new(&alone, cells, 50.0, &noise, &power(), 1.0));
        for ranks in [1, 2, 3, 5, 17] {
            let slabs = on_ranks(ranks, |communicator| {
                fields(&LinearModes::new(&communicator, cells, 50.0, &noise, &power(), 1.0))
            });
            for (n, whole) in whole.iter().enumerate() {
                assert!(slabs.iter().map(|slab| slab[n].as_slice()).collect::<Vec<_>>().concat() == *whole, "{ranks}");
            }
        }
    }
}

/// Growing mode: i k·ṽ = −rate δ, mode by mode, and no rotation: ṽ is parallel to k.
#[test]
fn velocity_satisfies_continuity() {
    let cells = [16, 32, 16];
    let alone = Communicator::alone();
    let modes = LinearModes::new(&alone, cells, 30.0, &noise(3), &power(), 0.02);
    let rate = 0.37;
    let delta = modes.density_contrast();
    let velocity: Vec<Vec<f64>> = (0..3).map(|axis| modes.velocity(axis, rate)).collect();
    for n in WAVES {
        let k = wave_vector(n, modes.spacing);
        let d = mode(&delta, cells, n);
        let v: Vec<Complex<f64>> = velocity.iter().map(|v| mode(v, cells, n)).collect();
        let divergence: Complex<f64> = (0..3).map(|a| Complex::new(0.0, k[a]) * v[a]).sum();
        assert!((divergence + d * rate).norm() < 1e-12 * d.norm(), "{n:?}");
        let rotation = v[0] * k[1] - v[1] * k[0];
        assert!(rotation.norm() < 1e-12 * d.norm());
    }
    // Nyquist planes and the mean are empty
    for n in [[0, 0, 0], [8, 1, 1], [1, 16, 0], [0, 0, 8]] {
        assert!(mode(&delta, cells, n).norm() < 1e-15);
    }
}

/// The measured spectrum of the real field in shells of k against P(k): a shell of M independent modes has a relative
/// error 1/√M; the sum over shells of the squared deviations is χ² with one degree of freedom each.
#[test]
fn the_spectrum_is_that_of_linear_theory() {
    let (n, box_mpc_h) = (64, 100.0);
    let power = power();
    let field = LinearModes::new(&Communicator::alone(), [n; 3], box_mpc_h, &noise(42), &power, 1.0).density_contrast();
    let spectrum = to_modes(n, &field);
    let shells = n / 2;
    let (mut ratio, mut modes) = (vec![0.0; shells], vec![0.0; shells]);
    for (index, value) in spectrum.iter().enumerate() {
        let wave = [index % n, index / n % n, index / (n * n)].map(|i| signed(i, n));
        let k = norm(wave_vector(wave, [2.0 * PI / box_mpc_h; 3]));
        let shell = (k * box_mpc_h / (2.0 * PI)) as usize;
        if index == 0 || shell >= shells || on_nyquist_plane(wave, [n; 3]) {
            continue;
        }
        ratio[shell] += value.norm_sqr() * box_mpc_h.powi(3) / power.at(k);
        modes[shell] += 0.5; // n and −n are one
    }
    let deviations: Vec<f64> = (1..shells).map(|s| (ratio[s] / (2.0 * modes[s]) - 1.0) * f64::sqrt(modes[s])).collect();
    let chi_squared: f64 = deviations.iter().map(|d| d * d).sum();
    let freedom = deviations.len() as f64;
    println!("χ² = {chi_squared} for {freedom} shells, {deviations:?}");
    assert!((chi_squared - freedom).abs() < 4.0 * (2.0 * freedom).sqrt(), "χ² = {chi_squared} for {freedom}");
    assert!(deviations.iter().all(|d| d.abs() < 4.5));
}

/// With fixed amplitudes the variance in spheres of 8 Mpc/h is the sum over the mesh's modes without scatter; of the
/// integral it lacks only k below 2π/L and beyond the mesh, together less than 1%.
#[test]
fn the_variance_in_spheres_is_sigma8() {
    let (n, box_mpc_h) = (64, 300.0);
    let fixed = WhiteNoise { seed: 1, fixed_amplitude: true, inverted: false };
    let field = LinearModes::new(&Communicator::alone(), [n; 3], box_mpc_h, &fixed, &power(), 1.0).density_contrast();
    let variance: f64 = to_modes(n, &field)
        .iter()
        .enumerate()
        .skip(1)
        .map(|(index, value)| {
            let wave = [index % n, index / n % n, index / (n * n)].map(|i| signed(i, n));
            let x = 8.0 * norm(wave_vector(wave, [2.0 * PI / box_mpc_h; 3]));
            value.norm_sqr() * (3.0 * (x.sin() - x * x.cos()) / x.powi(3)).powi(2)
        })
        .sum();
    println!("sigma8 of the field: {}", variance.sqrt());
    assert!((variance.sqrt() / 0.9 - 1.0).abs() < 0.01, "{}", variance.sqrt());
}

/// Complex modes of a real cube, `[nz, ny, nx]`, by one-dimensional transforms along each axis.
fn to_modes(n: usize, field: &[f64]) -> Vec<Complex<f64>> {
    let fft = rustfft::FftPlanner::new().plan_fft_forward(n);
    let mut modes: Vec<Complex<f64>> = field.iter().map(|v| Complex::new(*v, 0.0) / field.len() as f64).collect();
    for _ in 0..3 {
        fft.process(&mut modes);
        // rotate the axes: after three rounds they are back in place
        let mut rotated = vec![Complex::ZERO; modes.len()];
        for (index, value) in modes.iter().enumerate() {
            let (i, rest) = (index % n, index / n);
            rotated[i * n * n + rest] = *value;
        }
        modes = rotated;
    }
    modes
}

/// Of a pair both fields have the same modes with opposite signs.
#[test]
fn an_inverted_field_is_the_negative() {
    let alone = Communicator::alone();
    let field = |inverted| {
        let noise = WhiteNoise { inverted, ..noise(3) };
        LinearModes::new(&alone, [16; 3], 50.0, &noise, &power(), 1.0).density_contrast()
    };
    assert!(field(true).iter().zip(field(false)).all(|(inverted, value)| *inverted == -value && value != 0.0));
}

/// White noise in cells that is one wave: δ = growth √(P N/V) times the noise, with the sign that was asked for.
#[test]
fn noise_in_cells_gets_the_spectrum() {
    let (cells, box_mpc_h, alone) = ([16, 8, 16], 50.0, Communicator::alone());
    let wave = |n: usize| {
        let at = [n % 16, n / 16 % 8, n / 128].map(|i| (i as f64 + 0.5) * 2.0 * PI);
        2f64.sqrt() * (3.0 * at[0] / 16.0 - at[1] / 8.0 + 2.0 * at[2] / 16.0).cos()
    };
    let given: Vec<f64> = (0..16 * 8 * 16).map(wave).collect();
    let k = 2.0 * PI / 50.0 * (9.0 + 4.0 + 4.0f64).sqrt();
    let size = 0.5 * (power().at(k) * 2048.0 / (50.0 * 25.0 * 50.0)).sqrt();
    for (inverted, sign) in [(false, 1.0), (true, -1.0)] {
        let change = WhiteNoise { inverted, ..noise(0) };
        let modes = LinearModes::of_noise(&alone, cells, box_mpc_h, &given, &change, &power(), 0.5);
        let found = modes.density_contrast();
        assert!(found.iter().zip(&given).all(|(d, w)| (d - sign * size * w).abs() < 1e-13 * size), "{inverted}");
    }
    // every mode but those that are left out is as large as the mean
    let fixed = WhiteNoise { fixed_amplitude: true, ..noise(3) };
    let own = LinearModes::noise_in_cells(&alone, cells, &fixed);
    let sum: f64 = own.iter().map(|x| x * x).sum();
    assert!((sum - (15.0 * 7.0 * 15.0 - 1.0)).abs() < 1e-9, "{sum}");
}

/// A wave sampled at lower corners has its exact values at centres; modes of a Nyquist plane are left out.
#[test]
fn values_between_corners_are_those_of_the_wave() {
    let cells = [16, 8, 16];
    let wave = |n: usize, before: f64| {
        let at = [n % 16, n / 16 % 8, n / 128].map(|i| (i as f64 + before) * 2.0 * PI);
        0.3 + (3.0 * at[0] / 16.0 - at[1] / 8.0 + 2.0 * at[2] / 16.0).sin()
    };
    let nyquist = |n: usize| if (n / 16).is_multiple_of(2) { 0.1 } else { -0.1 };
    let corners: Vec<f64> = (0..16 * 8 * 16).map(|n| wave(n, 0.0) + nyquist(n)).collect();
    let found = at_centres(&Communicator::alone(), cells, &corners);
    let expected = (0..corners.len()).map(|n| wave(n, 0.5));
    assert!(found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-13));
}
