//! Programs against what Rhai makes of the same closures.

use super::*;
use rhai::{Engine, Map};
use std::sync::{Arc, Mutex};

/// The fields of a cell, by name; Rhai reads them from a map.
fn cell(numbers: &mut impl FnMut() -> f64) -> Map {
    let mut cell = Map::new();
    for (name, op) in fields() {
        let number = numbers();
        let value = match op {
            Op::Level => Dynamic::from((number * 5.0) as i64),
            Op::VelocityX | Op::VelocityY | Op::VelocityZ | Op::DivergenceOfVelocity => (number - 0.5).into(),
            _ => (10f64.powf(4.0 * number - 2.0)).into(),
        };
        cell.insert(name.into(), value);
    }
    // two names of one field
    let density = cell["density"].clone();
    cell.insert("matter_density".into(), density);
    cell
}

/// The name of a field, the first of those that it has.
fn name_of(op: Op) -> &'static str {
    fields().find(|(_, other)| *other == op).expect("a field").0
}

/// Compiles closures with `value_of` and calls them on random cells; what the two give is kept.
fn both(script: &str) -> Vec<(f64, f64)> {
    let results = Arc::new(Mutex::new(Vec::new()));
    let mut engine = Engine::new();
    engine.set_optimization_level(rhai::OptimizationLevel::None);
    engine.register_fn("pow", |x: f64, y: f64| x.powf(y));
    let kept = results.clone();
    engine.register_fn(
        "value_of",
        move |context: NativeCallContext<'_>, closure: FnPtr| -> Result<(), Box<EvalAltResult>> {
            let expression = Expression::of(&context, "value_of", &closure).expect("a closure");
            let (builder, result) = expression.walk(Binding::Cell).expect("compiles");
            let program = builder.finish(result.value).expect("fits");
            let mut seed = 1u64;
            let mut numbers = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (seed >> 11) as f64 / (1u64 << 53) as f64
            };
            for _ in 0..50 {
                let cell = cell(&mut numbers);
                let number = |value: &Dynamic| {
                    let truth = |truth: bool| f64::from(u8::from(truth));
                    value.as_float().or(value.as_int().map(|n| n as f64)).or(value.as_bool().map(truth)).unwrap()
                };
                let ours = program.result(|op| number(&cell[name_of(op)]));
                let called = closure.call_within_context::<Dynamic>(&context, (cell.clone(),))?;
                let kind = if called.is_int() { Kind::Whole } else { Kind::Real };
                assert_eq!(result.kind, if called.is_bool() { Kind::Truth } else { kind });
                kept.lock().unwrap().push((ours, number(&called)));
            }
            Ok(())
        },
    );
    engine.run(script).unwrap_or_else(|e| panic!("{script}: {e}"));
    let results = results.lock().unwrap().clone();
    assert!(!results.is_empty());
    results
}

#[test]
fn numbers_are_those_of_rhai() {
    for expression in [
        "c.density + c.pressure * 2 - c.vx / 3",
        "-c.energy % 0.7 + +c.x",
        "c.density ** 2 - c.density ** 0.7 + 2 ** c.vx + c.h ** -3 + c.level ** 2",
        "(c.level + 1) * 7 / 2",
        "7 % (c.level + 2) - c.level",
        "8 ** (c.level + 1)",
        "c.level / 2 * 1.5",
        "5 / 3 * c.density",
        "5.0 / 3 * c.density",
        "min(c.density, c.pressure) + max(c.vx, c.level) - min(3, c.level)",
        "abs(c.div_v) + abs(-c.level) + (c.vy * c.vz).abs()",
        "sqrt(c.density) * c.sound_speed.sqrt() + c.level.to_float().sqrt()",
        "ln(c.density) + log(c.a) + log(c.pressure, 2.0) + c.entropy.ln()",
        "exp(c.vx) + (c.vy * 20).exp()",
        "pow(c.density, c.vx) + c.speed.pow(1.5)",
        "if c.density > 1 { c.x } else { c.level.to_float() }",
        "if c.level == 1 { 1 } else if c.level == 2 { 20 } else { 300 }",
        "{ let r = c.x * c.x + c.y * c.y; let s = r + c.z * c.z; sqrt(s) - sqrt(r) }",
        "{ let f = if c.vx < 0 { let g = c.vx * 2; -g } else { c.vx }; f * c.overdensity }",
        "{ return c.density * 2; }",
        "WHOLE / 2 + REAL * c.density",
        "LIST[1] * c.x + LIST[-1] * MAP.inner.b[0] + MAP[\"a\"]",
        "{ let l = MAP.inner; let p = LIST; c.x - p[0] + l.b[1] * (p[1] - c.y).abs() }",
        "c.gas_density / c.matter_density + c.dark_matter_density * c.gas_overdensity",
    ] {
        let script = format!(
            "let WHOLE = 7; let REAL = 0.25; let LIST = [0.5, 3, 2.5]; let MAP = #{{ a: 4, inner: #{{ b: [1.5, 8] }} }};
             value_of(|c| {expression});"
        );
        for (ours, theirs) in both(&script) {
            // powers and logarithms: a few units in the last place
            let close = ours == theirs || (ours / theirs - 1.0).abs() < 1e-13;
            assert!(close || ours.is_nan() && theirs.is_nan(), "{expression}: {ours}, Rhai {theirs}");
        }
    }
}

#[test]
fn truths_are_those_of_rhai() {
    for expression in [
        "c.density < c.pressure",
        "c.density <= 1 || c.pressure >= 1.5 && !(c.level > 2)",
        "c.level == 2 || c.level != 3 && c.level >= 1",
        "c.level < 2.5 & c.vx > 0 | c.vy > 0 ^ c.vz > 0",
        "(c.vx > 0) == (c.vy > 0) && (c.vx > 0) != ON",
        "!ON || c.density > 1 && c.density < 10 && c.pressure > 0.1",
        "true && c.density > LIMIT * 2 || false",
        "if c.level > 1 { c.density > 1 } else { ON && c.vx > 0 }",
        "(c.density / c.h > 3) == !(c.density / c.h <= 3)",
        "ln(c.vx) > -1 || c.vx < 0 && sqrt(c.vx) != sqrt(c.vx)",
    ] {
        let results = both(&format!("let LIMIT = 0.5; let ON = true; value_of(|c| {expression});"));
        let both_occur = results.iter().any(|(ours, _)| *ours == 1.0) && results.iter().any(|(ours, _)| *ours == 0.0);
        assert!(both_occur || expression.contains("!(c.density / c.h"), "{expression}: the test needs both");
        for (ours, theirs) in results {
            assert_eq!(ours, theirs, "{expression}");
        }
    }
}

/// A closure may be a function of the script, and other closures beside it do not matter.
#[test]
fn a_function_of_the_script_is_an_expression_too() {
    let script = "fn dense(c) { c.density > 2 } fn dense_too(c) { c.density > 200 } value_of(Fn(\"dense\"));";
    for (ours, theirs) in both(script) {
        assert_eq!(ours, theirs);
    }
}

/// Before a captured value is known, all else is checked; with it the program is that of a number.
#[test]
fn values_may_be_known_later() {
    let given = Arc::new(Mutex::new(Vec::new()));
    let mut engine = Engine::new();
    engine.set_optimization_level(rhai::OptimizationLevel::None);
    let kept = given.clone();
    engine.register_fn("expression", move |context: NativeCallContext<'_>, closure: FnPtr| {
        kept.lock().unwrap().push(Expression::of(&context, "expression", &closure).expect("a closure"));
    });
    engine
        .run(
            "let PEAK = #{ place: [0.5, 3.0], density: 40 };
             expression(|c| c.density > PEAK.density / 4 && (c.x - PEAK.place[1]).abs() < PEAK.place[0]);
             expression(|c| if PEAK.on { c.densty > 1 } else { c.x > PEAK.place });
             expression(|level| PEAK.density * 8 ** level);
             expression(|c| c.density > 10 && (c.x - 3.0).abs() < 0.5);",
        )
        .unwrap();
    let given = given.lock().unwrap();
    let unknown = |n: usize| given[n].with(vec![Dynamic::from(NotKnown)]);
    assert_eq!(unknown(0).compile().unwrap(), None);
    assert_eq!(given[0].compile().unwrap(), given[3].compile().unwrap());
    let EvalAltResult::ErrorRuntime(refusal, _) = *unknown(1).compile().unwrap_err() else { panic!("a refusal") };
    let error = refusal.cast::<Refusal>().message;
    assert!(error.contains("densty"), "{error}");
    assert_eq!(unknown(2).at_level(1).unwrap(), None);
    assert_eq!(given[2].at_level(1).unwrap(), Some(320.0));
}
