//! Heating and Compton cooling in whole runs: the exact thermal history of gas at rest, the ledger, the limit of Δt, and bits.

use crate::common::{cosmological, cosmological_parameters, device, initial};
use crate::ranks::{ALONE, From, assert_same, chance, curve, run_with_checkpoint};
use comove_kernels::layout::{ENERGY, GROUP_CELLS};
use comove_sim::mesh::PERIODIC;
use comove_sim::records::{StepLimit, StepRecord};
use comove_sim::source::heating::Heating;
use comove_sim::{Coordinates, Cosmology, Precision, RunParameters, Simulation, TimeSteps, Units};

const COSMOLOGY: fn() -> Cosmology = || Cosmology::flat(0.7, 0.3, 0.045, 0.9, 1.0);

/// Specific internal energy of gas of a temperature, code units.
fn specific_energy(kelvin: f64, a: f64) -> f64 {
    1.5 * kelvin / Units::new(Some(COSMOLOGY())).temperature_k(a, 1.0 / (0.82 + 0.88))
}

/// The temperature that gas at the mean density, wholly ionised, has at `end`, from one of `kelvin` at `start`, by 20,000
/// steps of fourth order in the proper temperature: dT/dt = −2 H T − (T − T_γ)/t_C + 2 h μ m_H/(3 k_B), t_C written out.
fn temperature(kelvin: f64, [start, end]: [f64; 2], compton: bool, rate: f64) -> f64 {
    let [hubble_s, weight, electrons] = [0.7 * 1e7 / 3.085_677_581_491_367e24, 1.0 / 1.7, 0.88 / 1.7];
    let slope = |a: f64, kelvin: f64| {
        let hubble = hubble_s * (0.3 / a.powi(3) + COSMOLOGY().omega_r / a.powi(4) + COSMOLOGY().omega_lambda).sqrt();
        let background = 2.7255 / a;
        // 3 m_e c/(8 σ_T a_r T⁴) at 1 K
        let cooling_s = 2.034_747e21 / background.powi(4) / electrons;
        let cooling = if compton { (kelvin - background) / cooling_s } else { 0.0 };
        let heating = rate * 2.0 / 3.0 * weight * 1.673_557_5e-24 / 1.380_649e-16;
        (-2.0 * hubble * kelvin - cooling + heating) / (a * hubble)
    };
    let steps = 20_000;
    let step = (end / start).ln() / f64::from(steps);
    (0..steps).fold(kelvin, |y, n| {
        let x = start.ln() + step * f64::from(n);
        let f = |x: f64, y: f64| x.exp() * slope(x.exp(), y);
        let k1 = f(x, y);
        let k2 = f(x + 0.5 * step, y + 0.5 * step * k1);
        let k3 = f(x + 0.5 * step, y + 0.5 * step * k2);
        let k4 = f(x + step, y + step * k3);
        y + step / 6.0 * (k1 + 2.0 * (k2 + k3) + k4)
    })
}

/// Gas at rest that follows the background's temperature, leaves it, and is heated, from z = 12 to 5; in shorter steps more
/// exactly, with second order.
#[test]
fn thermal_history() {
    let [from, to] = [1.0 / 13.0, 1.0 / 6.0];
    for (compton, rate) in [(true, 0.0), (false, 2e-6), (true, 2e-6)] {
        let errors = [0.02, 0.005].map(|max_delta_a| {
            let heating = Some(Heating { ionized_fraction: compton.then_some(1.0), rate });
            let parameters = RunParameters {
                precision: Precision::Double,
                gravity: false,
                max_delta_a,
                heating,
                ..RunParameters::default()
            };
            let pressure = specific_energy(2000.0, from) / 1.5;
            let mut start = initial(1, PERIODIC, Some(COSMOLOGY()), from, |_| (1.0, [0.0; 3], pressure));
            start.header.mean_molecular_weight = 0.588;
            let mut run = Simulation::start(device(2), &start, parameters).unwrap();
            while run.next_stop() < to {
                run.step().unwrap();
            }
            let end = run.output_at(to).unwrap();
            let found = end.state.fluid[ENERGY * GROUP_CELLS] / specific_energy(1.0, to);
            found / temperature(2000.0, [from, to], compton, rate) - 1.0
        });
        assert!(errors[1].abs() < 1e-4, "Compton cooling {compton}, {rate} erg/g/s: {errors:?}");
        assert!(errors[1].abs() < 0.12 * errors[0].abs() || errors[0].abs() < 1e-5, "{errors:?}");
    }
}

/// In non-comoving coordinates the rate is in code units: energy grows by density times rate times time, and the ledger holds it.
#[test]
fn constant_heat_in_non_comoving_coordinates() {
    let heating = Some(Heating { ionized_fraction: None, rate: 0.3 });
    let parameters =
        RunParameters { coordinates: Coordinates::Plain, gravity: false, heating, ..RunParameters::default() };
    let start = initial(1, PERIODIC, None, 1.0, |_| (2.0, [1.0, 0.0, 0.0], 1e-5));
    let mut run = Simulation::start(device(1), &start, parameters).unwrap();
    let first = run.step().unwrap();
    assert!(matches!(&first.limit, StepLimit::Source { source, level: 0, .. } if source == "heating"), "{first:?}");
    // 0.3 dt is to be 0.3 of the energy afterwards, 1.5 P/ρ + 0.3 dt; the search comes from longer steps and ends within 10%
    let exact = 0.75e-5 / 0.7;
    assert!((exact..1.1 * exact).contains(&first.dt), "{:e}", first.dt);
    let last = (0..40).map(|_| run.step().unwrap()).last().unwrap();
    let heat = last.ledger.sources["heating"];
    assert!((heat / (2.0 * 0.3 * last.time) - 1.0).abs() < 1e-4, "{heat} at {}", last.time);
    assert!(last.energy_residual.abs() < 1e-5 && heat > 1e-3, "{}", last.energy_residual);
}

/// Threads, ranks and a stop in the middle change no bit of a refined run with heat, which stays stable and whose energy
/// the ledger explains.
#[test]
fn bits_do_not_depend_on_who_computes() {
    for time_steps in [TimeSteps::Uniform, TimeSteps::Individual] {
        let heating = Some(Heating { ionized_fraction: Some(1.0), rate: 1e-3 });
        let parameters =
            RunParameters { time_steps, regrid_every: 2, heating, ..cosmological_parameters(Precision::Single) };
        let mut start = cosmological(2);
        start.header.mean_molecular_weight = 0.588;
        let alone = run_with_checkpoint(From::Memory(&start), ALONE, &parameters, 8, Some(4));
        let last = alone.records.last().unwrap();
        let by_source = |record: &StepRecord| matches!(record.limit, StepLimit::Source { .. });
        assert!(
            by_source(&alone.records[0]) && by_source(&alone.records[4]),
            "the first step, and that after the stop"
        );
        assert!(last.ledger.sources["heating"] > 0.0 && last.energy_residual.abs() < 1e-4, "{last:?}");
        for team in [curve(2), chance(3, 7)] {
            let shared = run_with_checkpoint(From::Memory(&start), team, &parameters, 8, None);
            assert_same(&shared, &alone, &format!("{team:?}, {time_steps:?}"));
        }
        let from = From::File(&alone.file("checkpoint.h5"));
        let continued = run_with_checkpoint(from, curve(2), &parameters, 8, None);
        assert_same(&continued, &alone, "continued");
        // a run with another source, or none, does not go by what this one allowed
        let checkpoint = alone.checkpoint.as_ref().unwrap();
        let next = |rate: Option<f64>| {
            let heating = rate.map(|rate| Heating { ionized_fraction: Some(1.0), rate });
            let mut run =
                Simulation::start(device(2), checkpoint, RunParameters { heating, ..parameters.clone() }).unwrap();
            run.step().unwrap()
        };
        let [same, hotter, without] = [Some(1e-3), Some(1.0), None].map(next);
        assert_eq!(same.dt, alone.records[4].dt);
        assert!(hotter.dt < 0.1 * same.dt && by_source(&hotter) && !by_source(&without) && without.dt > same.dt);
    }
}

#[test]
fn heating_that_cannot_be_is_refused() {
    let says = |heating: serde_json::Value, coordinates: Coordinates| {
        let heating = serde_json::from_value(heating).unwrap();
        let parameters = RunParameters { heating, coordinates, gravity: false, ..RunParameters::default() };
        parameters.check().unwrap_err().to_string()
    };
    for (heating, coordinates, message) in [
        (serde_json::json!({}), Coordinates::Comoving, "no effect"),
        (serde_json::json!({ "ionized_fraction": 1.0 }), Coordinates::Plain, "comoving"),
        (serde_json::json!({ "rate": -1.0 }), Coordinates::Comoving, "heating.rate = -1: must be 0 or positive"),
        (serde_json::json!({ "ionized_fraction": 1.2 }), Coordinates::Comoving, "(0, 1]"),
    ] {
        let error = says(heating, coordinates);
        assert!(error.contains("heating") && error.contains(message), "{error}");
    }
    // temperatures of the start are those of neutral gas
    let heating = Some(Heating { ionized_fraction: Some(1.0), rate: 0.0 });
    let parameters = RunParameters { heating, ..cosmological_parameters(Precision::Single) };
    let error = Simulation::start(device(1), &cosmological(1), parameters).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("mean_molecular_weight: 0.588"), "{error}");
}
