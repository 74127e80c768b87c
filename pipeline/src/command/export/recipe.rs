//! Exports of a recipe: its initial condition in the format of another code, and a parameter file for the run.

use super::deck::{self, Setup};
use super::{check_absent, check_apart, check_memory, output, remove_earlier};
use crate::campaign::{CampaignResolver, select};
use crate::cli::{Code, Export, name_of};
use crate::command::{evaluated, given, print};
use crate::error::PipelineError;
use crate::processes::isolated_read;
use crate::stage::Stage;
use crate::stage::evolve::run::{Evolve, Origin};
use crate::stage::ic_task;
use crate::stage::initial::{InitialCondition, InitialFacts};
use crate::terminal::progress::Progress;
use comove_ic::format::enzo::write as enzo_files;
use comove_ic::format::gadget::write::{self as particle_file, Dialect};
use comove_ic::format::grafic::write as grafic;
use comove_ic::format::um_ic::Order;
use comove_ic::format::{FileHeader, nyx, par_ic, um_ic};
use comove_ic::particle_rows::{Particles, next_id};
use comove_ic::temperature::specific_internal_energy;
use comove_ic::{UniformMesh, restrict};
use comove_kernels::Device;
use comove_sim::parallel::Communicator;
use comove_sim::{Cosmology, HostParticles, Precision};
use std::path::Path;

pub(super) fn export(asked: &Export, code: Code) -> Result<(), PipelineError> {
    let folder = output(asked, &format!("_{}", name_of(code)));
    check_absent(&folder, asked, true)?;
    let recipe = evaluated(&asked.source, given(asked.parameters.clone())?)?;
    recipe.warnings.iter().try_for_each(|warning| print(&format!("warning: {warning}")))?;
    let resolver = CampaignResolver::new(&recipe.campaign, Path::new(""));
    let n = run_of(&resolver, asked)?;
    let run = resolver.stage(n).as_run().expect("a run was chosen");
    let name = resolver.name(n);
    let (ic, facts) = initial(&resolver, n, run, asked)?;
    let follow = ic.follow().len();
    // with it particles would be on no lattice
    let ic = &ic.without_follow();
    check(run, facts, code, name)?;
    if let InitialCondition::Load(load, _) = ic {
        check_apart(&folder, &load.path)?;
    }
    let on_mesh = matches!(code, Code::Ramses | Code::Enzo);
    if on_mesh && ic.off_lattice().is_some() {
        let reason = format!(
            "particles that are on no lattice; --for {} needs one in each cell of a mesh: use --for gadget, swift or gamer",
            name_of(code)
        );
        return Err(PipelineError::input(&asked.source, reason));
    }
    if code == Code::Nyx && ic.has_gas() {
        let reason = "gas; --for nyx writes dark matter alone: use another code, or gas: false";
        return Err(PipelineError::input(&asked.source, reason));
    }

    check_memory(ic.memory(&Device::cpu(1)?, None).host)?;

    let progress = Progress::on_terminal();
    let job = progress.job(name);
    let line = job.stage();
    let report = |activity: &str, fraction: f64| line.at(activity, fraction);
    let alone = Communicator::alone();
    if let InitialCondition::Load(load, _) = ic {
        isolated_read::mesh(load)?;
    }
    let (mut mesh, remarks, _) = ic_task::mesh(ic, &alone, &report)?;
    if let InitialCondition::Load(load, _) = ic {
        remarks.iter().try_for_each(|remark| print(&format!("warning: {}: {remark}", load.path.display())))?;
    }
    if !mesh.nests.is_empty() {
        let reason = format!("gas on nested meshes: --for {} writes one mesh; export dark matter alone", name_of(code));
        return Err(PipelineError::input(&asked.source, reason));
    }
    let width = facts.box_mpc_h / facts.cells[0] as f64;
    let has_gas = mesh.has_gas(&alone);
    let of_particles = matches!(code, Code::Gadget | Code::Swift);
    let is_kept = on_mesh || of_particles && has_gas && moves_with_dark_matter(ic);
    let lattice = mesh.dark_matter.as_ref().filter(|_| is_kept).cloned();
    let dark_matter = restrict::take_dark_matter(&alone, &mut mesh, has_gas, width, Some(&facts.cosmology))?;
    let dark_matter_header = dark_matter.as_ref().map(HostParticles::header);
    let setup = Setup {
        campaign: &recipe.campaign.name,
        facts,
        run,
        has_gas,
        dark_matter: dark_matter_header,
        follow: match (follow, dark_matter_header.map_or(0, |header| header.not_followed)) {
            (0, 0) => None,
            (0, marked) => Some(format!("all but {marked} particles")),
            (identities, _) => Some(format!("{identities} identities")),
        },
        temperature_k: temperature_k(&mesh, facts),
    };
    std::fs::create_dir_all(&folder).map_err(PipelineError::io(&folder))?;
    remove_earlier(&folder, deck::files(code))?;
    mesh.dark_matter = lattice;
    write(&setup, (&mesh, dark_matter.as_ref()), &folder, code, &|fraction| report("writing", fraction))?;
    drop((line, job));
    let cells = if has_gas { mesh.density.len() } else { 0 };
    let particles = setup.particles();
    print(&format!(
        "{}: {name} for {}, {cells} cells of gas and {particles} particles",
        folder.display(),
        name_of(code)
    ))
}

/// Writes the initial condition, then the deck.
fn write(
    setup: &Setup<'_>,
    (mesh, dark_matter): (&UniformMesh, Option<&HostParticles>),
    folder: &Path,
    code: Code,
    progress: &dyn Fn(f64),
) -> Result<(), PipelineError> {
    let facts = setup.facts;
    let lengths = facts.root.map(|n| facts.box_mpc_h * n as f64 / facts.root[0] as f64);
    let dark = || dark_matter.into_iter().flat_map(|particles| Particles::of_dark_matter(particles, lengths));
    let all = || {
        let first_id = next_id(dark_matter);
        let gas = setup.has_gas.then(|| match mesh.lattice() {
            Some(lattice) => Particles::of_gas_beside(mesh, lattice, facts.box_mpc_h, first_id),
            None => Particles::of_mesh(mesh, facts.box_mpc_h, first_id),
        });
        gas.into_iter().chain(dark()).collect::<Vec<_>>()
    };
    let cosmology = Cosmology { omega_b: setup.omega_gas(), ..facts.cosmology };
    let header = FileHeader { cosmology, a: setup.start(), box_mpc_h: facts.box_mpc_h };
    match code {
        Code::Gadget => {
            particle_file::write(&folder.join(deck::gadget::IC), Dialect::Gadget, &header, &all(), progress)?;
            deck::gadget::write_deck(setup, folder)
        }
        Code::Swift => {
            particle_file::write(&folder.join(deck::swift::IC), Dialect::Swift, &header, &all(), progress)?;
            deck::swift::write_deck(setup, folder)
        }
        Code::Gamer => {
            if setup.has_gas {
                um_ic::write(&folder.join(deck::gamer::GAS), mesh, Order::Vzyx, Precision::Double)?;
            }
            if dark_matter.is_some() {
                let particles: Vec<Particles<'_>> = dark().collect();
                par_ic::write(&folder.join(deck::gamer::DARK_MATTER), &particles, progress)?;
            }
            deck::gamer::write_deck(setup, folder)
        }
        Code::Enzo => {
            enzo_files::write(folder, &header, mesh, progress)?;
            deck::enzo::write_deck(setup, folder)
        }
        Code::Nyx => {
            let particles: Vec<Particles<'_>> = dark().collect();
            nyx::write(&folder.join(deck::nyx::IC), &header, &particles, progress)?;
            deck::nyx::write_deck(setup, folder)
        }
        Code::Ramses => {
            let ics = folder.join(deck::ramses::IC);
            std::fs::create_dir_all(&ics).map_err(PipelineError::io(&ics))?;
            let share = setup.omega_gas() / cosmology.omega_m;
            grafic::write(&ics, &header, (mesh, share, setup.run.parameters.gamma), None, progress)?;
            deck::ramses::write_deck(setup, folder)
        }
    }
}

/// True where gas and dark matter have the same displacements, because both have one linear spectrum.
fn moves_with_dark_matter(ic: &InitialCondition) -> bool {
    matches!(ic, InitialCondition::Gaussian(ic) if ic.species_transfer.is_none())
}

/// Mean temperature of the gas by mass in K.
fn temperature_k(mesh: &UniformMesh, facts: &InitialFacts) -> f64 {
    if mesh.density.is_empty() {
        return 0.0;
    }
    let sum = |values: &[f64]| values.iter().sum::<f64>();
    let specific = sum(&mesh.internal_energy) / sum(&mesh.density);
    let a = 1.0 / (1.0 + facts.z);
    specific / specific_internal_energy(&facts.cosmology, a, 1.0, facts.mean_molecular_weight, facts.gamma)
}

/// The position of the run that `--stage` names, or of the only one.
fn run_of(resolver: &CampaignResolver<'_>, asked: &Export) -> Result<usize, PipelineError> {
    let runs: Vec<usize> = match &asked.stage {
        Some(name) => select::find(resolver, name)?,
        None => resolver.positions().collect(),
    };
    let runs: Vec<usize> = runs.into_iter().filter(|&n| resolver.stage(n).as_run().is_some()).collect();
    let source = asked.source.display();
    match (runs.len(), &asked.stage) {
        (1, _) => Ok(runs[0]),
        (0, Some(name)) => Err(PipelineError::Usage(format!("--stage {name}: is no run; name a stage of kind evolve"))),
        (0, None) => Err(PipelineError::Usage(format!("{source}: has no run; add evolve(…) to export its input"))),
        (count, _) => {
            let names: Vec<String> = runs.iter().map(|&n| format!("{} ({})", n + 1, resolver.name(n))).collect();
            let names = names.join(", ");
            Err(PipelineError::Usage(format!("{source}: has {count} runs; choose one with --stage: {names}")))
        }
    }
}

/// The initial condition of a run.
fn initial<'r>(
    resolver: &'r CampaignResolver<'_>,
    n: usize,
    run: &'r Evolve,
    asked: &Export,
) -> Result<(&'r InitialCondition, &'r InitialFacts), PipelineError> {
    let ic = resolver.inputs(n).iter().find_map(|&input| resolver.stage(input).as_initial());
    match (ic, &run.origin) {
        (Some(ic), Origin::Initial(facts)) => Ok((ic, facts)),
        (_, origin) => {
            let found = if matches!(origin, Origin::Formula(_)) { "a formula" } else { "a snapshot" };
            let reason = format!(
                "the run {} starts from {found}; expected ic_gaussian or ic_load{}",
                resolver.name(n),
                if found == "a snapshot" { ": export the snapshot with --format gadget" } else { "" }
            );
            Err(PipelineError::input(&asked.source, reason))
        }
    }
}

/// Checks that the code can do the run.
fn check(run: &Evolve, facts: &InitialFacts, code: Code, name: &str) -> Result<(), PipelineError> {
    let refuse = |what: &str, found: String, expected: &str| {
        let code = name_of(code);
        Err(PipelineError::Usage(format!("{name}: {what} = {found}; --for {code} needs {expected}: change {what}")))
    };
    if run.parameters.boundary.periodic() != [true; 3] {
        let found = serde_json::to_string(&run.parameters.boundary).expect("names");
        return refuse("boundary", found, "a periodic box");
    }
    if facts.cosmology.has_neutrinos() {
        return refuse("m_nu_ev", facts.cosmology.m_nu_ev.to_string(), "m_nu_ev: 0, as neutrinos are not exported");
    }
    let is_power = facts.cells[0].is_power_of_two() && facts.root[0].is_power_of_two();
    if code == Code::Ramses && !is_power {
        return refuse("cells", facts.cells[0].to_string(), "a power of 2");
    }
    if code == Code::Nyx && !run.parameters.gravity {
        return refuse("gravity", "false".into(), "gravity, which moves its particles");
    }
    if code != Code::Gamer && facts.root.iter().any(|n| *n != facts.root[0]) {
        return refuse("root", format!("{:?}", facts.root), "a cubic box");
    }
    Ok(())
}
