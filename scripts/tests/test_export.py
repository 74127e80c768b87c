"""Exports as other readers see them: h5py, numpy, yt, and pynbody and VTK where they are installed.

COMOVE_PROGRAM is the program, as scripts/test sets it.
"""

import json
import os
import subprocess

import h5py
import numpy as np
import pytest
import yt

yt.set_log_level("error")

PROGRAM = os.environ.get("COMOVE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="COMOVE_PROGRAM is not set")

H, OMEGA_M, OMEGA_B, BOX, Z_START, Z = 0.7, 0.3, 0.045, 20.0, 49.0, 20.0
MPC_CM, NEWTON, MSUN_G = 3.0856775814913673e24, 6.6743e-8, 1.98840987e33
CRITICAL = 3 * (1e7 / MPC_CM) ** 2 / (8 * np.pi * NEWTON) * MPC_CM**3 / MSUN_G  # M☉/h per (Mpc/h)³

RECIPE = """
const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });
const IC = ic_gaussian(C, #{ box_mpc_h: 20, cells: CELLS, z: 49, seed: 5, dark_matter: true, gas: GAS });
const RUN = evolve(IC, #{ z_end: 20, max_delta_a: 0.05, max_level: 1, refine: [CRITERIA] });
campaign("export", [RUN])
"""


def comove(folder, *arguments, code=0):
    said = subprocess.run([PROGRAM, *map(str, arguments)], cwd=folder, capture_output=True, text=True)
    assert said.returncode == code, said.stdout + said.stderr
    return said.stdout + said.stderr


def recipe(folder, cells, gas):
    text = RECIPE.replace("CELLS", str(cells)).replace("GAS", "true" if gas else "false")
    of_gas = ", overdensity_above(6)" if gas else ""
    criteria = f"particles_above(8){of_gas}, region(#{{ min: [2, 2, 2], max: [7, 7, 7], level: 1 }})"
    (folder / "export.rhai").write_text(text.replace("CRITERIA", criteria))
    return folder


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A folder with a run of gas and dark matter, and its last output."""
    folder = recipe(tmp_path_factory.mktemp("both"), 32, True)
    comove(folder, "run", "export.rhai")
    return folder, next(folder.glob("export/evolve-*/output_z20.h5"))


def mean_density(z):
    """Of all matter in proper g/cm³."""
    return OMEGA_M * CRITICAL * H**2 * MSUN_G / MPC_CM**3 * (1 + z) ** 3


def test_gadget_has_the_particles_and_cells(both):
    folder, snapshot = both
    comove(folder, "export", snapshot, "z20.hdf5", "--format", "gadget")
    with h5py.File(folder / "z20.hdf5") as file, h5py.File(snapshot) as own:
        header = file["Header"].attrs
        dark = file["PartType1"]
        assert header["NumPart_Total"][1] == len(dark["ParticleIDs"]) == 32**3
        ids = own["Comove/particle_id"][:]
        assert np.array_equal(dark["ParticleIDs"][:], ids)
        assert np.allclose(dark["Coordinates"][:, 1], own["Particle/ParPosY"][:] * 1e3, rtol=1e-15)
        velocity = own["Particle/ParVelX"][:] * 100 * (1 + Z) ** 1.5
        assert np.allclose(dark["Velocities"][:, 0], velocity, rtol=1e-6)
        gas = file["PartType0"]
        mass = gas["Masses"][:].sum() + header["MassTable"][1] * 32**3
        expected = OMEGA_M * CRITICAL * BOX**3 / 1e10
        assert mass / expected == pytest.approx(1, rel=1e-5)
        assert gas["Masses"][:].sum() / mass == pytest.approx(OMEGA_B / OMEGA_M, rel=1e-5)
        volume = gas["Masses"][:] / gas["Density"][:]
        assert volume.sum() == pytest.approx((BOX * 1e3) ** 3, rel=1e-12)
        assert len(np.unique(np.round(np.log2(volume)))) == 2, "cells of two levels"
        everything = np.concatenate([gas["ParticleIDs"][:], ids])
        assert len(np.unique(everything)) == len(everything)


def test_yt_reads_gadget(both):
    folder, snapshot = both
    comove(folder, "export", snapshot, "yt.hdf5", "--format", "gadget")
    data, own = yt.load(str(folder / "yt.hdf5")), yt.load(str(snapshot))
    assert data.current_redshift == pytest.approx(Z)
    everything, known = data.all_data(), own.all_data()
    mass = everything["PartType0", "Masses"].to_value("g").sum() + everything["PartType1", "Masses"].to_value("g").sum()
    assert mass / data.domain_width.prod().to_value("cm**3") == pytest.approx(mean_density(Z), rel=1e-4)
    for axis in "xyz":
        speed = everything["PartType1", f"particle_velocity_{axis}"].to_value("km/s")
        assert speed.std() == pytest.approx(known["io", f"particle_velocity_{axis}"].to_value("km/s").std(), rel=1e-4)
    energy = everything["PartType0", "InternalEnergy"].to_value("cm**2/s**2")
    temperature = known["gas", "temperature"].to_value("K")
    # k_B T/((γ−1) μ m_H)
    expected = np.sort(temperature) * 1.380649e-16 * 1.5 / (1.22 * 1.6735575e-24)
    assert np.allclose(np.sort(energy), expected, rtol=1e-3)


def test_pynbody_reads_gadget(both):
    pynbody = pytest.importorskip("pynbody")
    folder, snapshot = both
    comove(folder, "export", snapshot, "pynbody.hdf5", "--format", "gadget")
    data = pynbody.load(str(folder / "pynbody.hdf5"))
    data.physical_units("kpc", "km s^-1", "Msol")
    mass = float(data["mass"].sum()) * MSUN_G
    side = float(data.properties["boxsize"].in_units("cm", **data.conversion_context()))
    assert mass / side**3 == pytest.approx(mean_density(Z), rel=1e-3)
    assert len(data.dm) == 32**3 and len(data.gas) > 32**3


def test_grafic_has_the_grid_and_the_lattice(both):
    folder, snapshot = both
    comove(folder, "export", snapshot, "lattice", "--format", "grafic")
    comove(folder, "export", snapshot, "root", "--format", "npy")

    def field(name):
        """[z][y][x], of records between their lengths."""
        data = (folder / "lattice" / name).read_bytes()
        head = np.frombuffer(data, "<i4", 4)
        assert list(head) == [44, 32, 32, 32]
        a, omega_m = np.frombuffer(data, "<f4", 8, offset=16)[4:6]
        assert a == pytest.approx(1 / (1 + Z), rel=1e-6) and omega_m == pytest.approx(OMEGA_M)
        planes = np.frombuffer(data, "<f4", offset=52).reshape(32, -1)
        return planes[:, 1:-1].reshape(32, 32, 32).astype("f8")

    def array(name):
        return np.load(folder / f"root/{name}.npy")

    density = array("density").astype("f8")
    assert np.allclose(field("ic_deltab"), density / density.mean() - 1, atol=1e-5)
    assert np.allclose((1 + field("ic_tempb")) * 1.356e-2 * (1 + Z) ** 2, array("temperature") / 1.22, rtol=1e-3)
    assert np.allclose(field("ic_velby"), array("velocity_y"), rtol=1e-4, atol=1e-3)
    order = np.argsort(array("particle_id"))
    assert np.allclose(field("ic_velcz").ravel(), array("particle_velocity_z")[order], rtol=1e-5, atol=1e-4)
    centres = (np.arange(32) + 0.5) * BOX / 32
    places = centres[None, None, :] + field("ic_poscx")
    apart = places.ravel() - array("particle_position_x")[order]
    assert np.abs((apart + BOX / 2) % BOX - BOX / 2).max() < 1e-5
    refused = comove(folder, "export", snapshot, "fine", "--format", "grafic", "--level", "1", code=4)
    assert "32768 particles; --format grafic needs a particle for each of the [64, 64, 64] cells of level 1" in refused


def test_marks_come_back(tmp_path):
    """What refinement follows, in GRAFIC files; other exports have identities without it."""
    folder = recipe(tmp_path, 16, False)
    text = (folder / "export.rhai").read_text()
    followed = [17, 18, 300, 4000]
    (folder / "export.rhai").write_text(text.replace("gas: false", f"gas: false, follow: {followed}"))
    comove(folder, "run", "export.rhai")
    snapshot = next(folder.glob("export/evolve-*/output_z20.h5"))
    assert "4092 of the lightest not followed by refinement" in comove(folder, "inspect", snapshot)
    comove(folder, "export", snapshot, "ics", "--format", "grafic")
    comove(folder, "export", snapshot, "arrays", "--format", "npy")
    assert np.array_equal(np.sort(np.load(folder / "arrays/particle_id.npy")), np.arange(16**3))
    load = 'ic_load(C, "ics", #{ box_mpc_h: 20, cells: 16, z: 20, trust: "evolved" })'
    (folder / "again.rhai").write_text("\n".join([*text.splitlines()[:2], f"const IC = {load};", 'campaign("again", [IC])']))
    comove(folder, "run", "again.rhai")
    with h5py.File(next(folder.glob("again/ic_load-*/initial_condition.h5"))) as file:
        is_marked = file["id"][:] >> np.uint64(59) == 1
    assert np.array_equal(np.flatnonzero(~is_marked), followed)


def test_arrays_are_what_yt_averages(both):
    folder, snapshot = both
    comove(folder, "export", snapshot, "arrays", "--format", "npy", "--level", "1")
    contents = json.loads((folder / "arrays/contents.json").read_text())
    own = yt.load(str(snapshot))
    grid = own.covering_grid(1, own.domain_left_edge, own.domain_dimensions * 2)
    density = np.load(folder / "arrays/density.npy")
    assert list(density.shape) == contents["arrays"]["density"]["shape"] == [64, 64, 64]
    expected = grid["gamer", "Dens"].to_value().transpose(2, 1, 0)
    assert np.allclose(density, expected, rtol=1e-6)
    assert density.mean() == pytest.approx(OMEGA_B / OMEGA_M, rel=1e-5)
    speed = grid["gas", "velocity_y"].to_value("km/s").transpose(2, 1, 0)
    assert np.allclose(np.load(folder / "arrays/velocity_y.npy"), speed, rtol=1e-4, atol=1e-4)
    mass = np.load(folder / "arrays/particle_mass.npy").sum() / (CRITICAL * BOX**3)
    assert mass == pytest.approx(OMEGA_M - OMEGA_B, rel=1e-5)
    assert np.load(folder / "arrays/particle_id.npy").dtype == np.uint64


def leaves(file):
    """Numbers of a level's cells that no finer block covers, by block: masks in the order of the file."""
    levels = [file[f"VTKHDF/Level{n}/AMRBox"][:] for n in range(2)]
    fine = {tuple(box[::2] // 16) for box in levels[1]}
    masks = []
    for box in levels[0]:
        mask = np.ones((16, 16, 16), bool)
        for k, j, i in np.ndindex(2, 2, 2):
            if tuple(box[::2] // 8 + [i, j, k]) in fine:
                mask[8 * k : 8 * k + 8, 8 * j : 8 * j + 8, 8 * i : 8 * i + 8] = False
        masks.append(mask.ravel())
    return [np.concatenate(masks), np.ones(len(levels[1]) * 16**3, bool)]


def test_vtkhdf_has_the_meshes(both):
    folder, snapshot = both
    comove(folder, "export", snapshot, "z20.vtkhdf", "--format", "vtkhdf", "--fields", "density,temperature")
    with h5py.File(folder / "z20.vtkhdf") as file:
        root = file["VTKHDF"]
        assert root.attrs["Type"] == b"OverlappingAMR" and h5py.check_string_dtype(root.attrs.get_id("Type").dtype).length == 14
        assert list(root.attrs["Version"]) == [1, 0]
        mass = 0.0
        for n, mask in enumerate(leaves(file)):
            level = root[f"Level{n}"]
            width = level.attrs["Spacing"][0]
            assert width == BOX / 32 / 2**n and len(level["CellData/density"]) == len(mask)
            mass += level["CellData/density"][:][mask].sum(dtype="f8") * width**3
        assert mass / BOX**3 == pytest.approx(OMEGA_B / OMEGA_M, rel=1e-5)
        assert set(root["Level0/CellData"]) == {"density", "temperature"}


def test_vtk_reads_it(both):
    """The visible cells have the mass of the gas."""
    reader = pytest.importorskip("vtkmodules.vtkIOHDF")
    from vtkmodules.util.numpy_support import vtk_to_numpy

    folder, snapshot = both
    comove(folder, "export", snapshot, "read.vtkhdf", "--format", "vtkhdf")
    source = reader.vtkHDFReader()
    source.SetFileName(str(folder / "read.vtkhdf"))
    source.SetMaximumLevelsToReadByDefaultForAMR(0)
    source.Update()
    data, mass = source.GetOutput(), 0.0
    assert data.GetNumberOfLevels() == 2
    blocks = data.NewIterator()
    blocks.InitTraversal()
    while not blocks.IsDoneWithTraversal():
        block = blocks.GetCurrentDataObject()
        cells = block.GetCellData()
        visible = vtk_to_numpy(cells.GetArray("vtkGhostType")) == 0 if cells.GetArray("vtkGhostType") else slice(None)
        mass += vtk_to_numpy(cells.GetArray("density"))[visible].sum(dtype="f8") * block.GetSpacing()[0] ** 3
        blocks.GoToNextItem()
    assert mass / BOX**3 == pytest.approx(OMEGA_B / OMEGA_M, rel=1e-5)


def keys(text, comment):
    lines = [line.split(comment)[0].split() for line in text.splitlines()]
    return {line[0]: line[1] for line in lines if len(line) > 1}


GADGET_KEYS = """InitCondFile OutputDir SnapshotFileBase OutputListFilename ICFormat SnapFormat TimeLimitCPU CpuTimeBetRestartFile MaxMemSize
TimeBegin TimeMax ComovingIntegrationOn Omega0 OmegaLambda OmegaBaryon HubbleParam Hubble BoxSize OutputListOn TimeBetSnapshot
TimeOfFirstSnapshot TimeBetStatistics NumFilesPerSnapshot MaxFilesWithConcurrentIO ErrTolIntAccuracy CourantFac MaxSizeTimestep
MinSizeTimestep TypeOfOpeningCriterion ErrTolTheta ErrTolThetaMax ErrTolForceAcc TopNodeFactor ActivePartFracForNewDomainDecomp
DesNumNgb MaxNumNgbDeviation UnitLength_in_cm UnitMass_in_g UnitVelocity_in_cm_per_s GravityConstantInternal SofteningComovingClass0
SofteningMaxPhysClass0 SofteningClassOfPartType0 SofteningClassOfPartType1 ArtBulkViscConst MinEgySpec InitGasTemp""".split()

SWIFT_KEYS = """UnitMass_in_cgs UnitLength_in_cgs UnitVelocity_in_cgs UnitCurrent_in_cgs UnitTemp_in_cgs h a_begin a_end Omega_cdm Omega_b
Omega_lambda eta MAC theta_cr epsilon_fmm mesh_side_length comoving_DM_softening max_physical_DM_softening comoving_baryon_softening
max_physical_baryon_softening resolution_eta CFL_condition dt_min dt_max file_name periodic basename delta_time""".split()

# those whose default GAMER refuses
GAMER_KEYS = """BOX_SIZE NX0_TOT_X NX0_TOT_Y NX0_TOT_Z END_T END_STEP OPT__BC_FLU_XM OPT__BC_FLU_XP OPT__BC_FLU_YM OPT__BC_FLU_YP OPT__BC_FLU_ZM
OPT__BC_FLU_ZP OPT__BC_POT PAR_NPAR PAR_INIT A_INIT OMEGA_M0 HUBBLE0 OPT__INIT OPT__OUTPUT_MODE""".split()


def exported(both, code):
    folder, _ = both
    comove(folder, "export", "export.rhai", code, "--for", code, "--overwrite")
    return folder / code


def test_gadget_deck(both):
    folder = exported(both, "gadget")
    found = keys((folder / "param.txt").read_text(), "%")
    assert not [key for key in GADGET_KEYS if key not in found]
    with h5py.File(folder / "ics.hdf5") as file:
        header = file["Header"].attrs
        for name in ["Omega0", "OmegaLambda", "OmegaBaryon", "HubbleParam", "BoxSize"]:
            assert float(found[name]) == pytest.approx(header[name], rel=1e-12)
        assert float(found["TimeBegin"]) == header["Time"] == pytest.approx(1 / (1 + Z_START))
    assert float((folder / "outputs.txt").read_text().split()[0]) == pytest.approx(1 / (1 + Z))
    assert 'evolve.refine: {"particles_above"' in (folder / "param.txt").read_text()


def test_swift_deck(both):
    folder = exported(both, "swift")
    found = {key.rstrip(":"): value for key, value in keys((folder / "swift.yml").read_text(), "#").items()}
    assert not [key for key in SWIFT_KEYS if key not in found]
    assert (folder / "outputs.txt").read_text().startswith("# Scale Factor\n")
    with h5py.File(folder / "ics.hdf5") as file:
        units = file["Units"].attrs
        side = file["Header"].attrs["BoxSize"] * units["Unit length in cgs (U_L)"]
        assert side == pytest.approx(BOX / H * MPC_CM)
        unit = units["Unit mass in cgs (U_M)"]
        mass = [file[f"PartType{n}/Masses"][:].sum() * unit for n in (0, 1)]
        assert sum(mass) / side**3 == pytest.approx(mean_density(0), rel=1e-5)
        total = float(found["Omega_b"]) + float(found["Omega_cdm"])
        assert mass[0] / sum(mass) == pytest.approx(float(found["Omega_b"]) / total, rel=1e-5)
        positions = {f"particle_position_{axis}": file["PartType1/Coordinates"][:, i] for i, axis in enumerate("xyz")}
        # gas of equal masses has moved from centres of cells as the dark matter has from their corners
        width = file["Header"].attrs["BoxSize"] / 32
        assert len(np.unique(file["PartType0/Masses"])) == 1
        at, gas_at = (file[f"PartType{n}/Coordinates"][:] / width for n in (1, 0))
        moved, gas_moved = at - np.rint(at), gas_at - 0.5 - np.rint(gas_at - 0.5)
        order = np.argsort(np.rint(at).astype(int) % 32 @ [1, 32, 1024])
        gas_order = np.argsort(np.rint(gas_at - 0.5).astype(int) % 32 @ [1, 32, 1024])
        lattice, gas_lattice = (values[rows].reshape(32, 32, 32, 3) for values, rows in [(moved, order), (gas_moved, gas_order)])
        mean = sum(np.roll(lattice, shift, (0, 1, 2)) for shift in np.ndindex(2, 2, 2)) / 8
        between = np.roll(mean, (-1, -1, -1), (0, 1, 2))
        assert (gas_lattice * between).sum() / (between**2).sum() == pytest.approx(1, abs=0.2)
        assert np.corrcoef(gas_lattice.ravel(), between.ravel())[0, 1] > 0.97
        masses = {"particle_mass": file["PartType1/Masses"][:]}
    data = yt.load_particles(
        positions | masses, length_unit=MPC_CM, mass_unit=unit, bbox=np.array([[0, BOX / H]] * 3), periodicity=(True,) * 3
    )
    dark = data.all_data()["all", "particle_mass"].to_value("g").sum() / data.domain_width.prod().to_value("cm**3")
    assert dark == pytest.approx(mean_density(0) * (1 - OMEGA_B / OMEGA_M), rel=1e-5)


def test_gamer_deck(both):
    folder = exported(both, "gamer")
    found = keys((folder / "Input__Parameter").read_text(), "#")
    assert not [key for key in GAMER_KEYS if key not in found]
    assert found["OPT__FLAG_RHO"] == found["OPT__FLAG_PAR_MASS_CELL"] == "1" and found["OPT__FLAG_JEANS"] == "0"
    gas = np.fromfile(folder / "UM_IC").reshape(5, 32, 32, 32)
    data = yt.load_uniform_grid({"density": gas[0].transpose(2, 1, 0)}, gas[0].shape, length_unit=float(found["BOX_SIZE"]))
    assert float(data.all_data().mean(("stream", "density"))) == pytest.approx(OMEGA_B / OMEGA_M, rel=1e-9)
    assert np.all(gas[4] > (gas[1:4] ** 2).sum(axis=0) / (2 * gas[0]))
    particles = np.fromfile(folder / "PAR_IC").reshape(7, int(found["PAR_NPAR"]))
    assert particles[0].sum() / BOX**3 == pytest.approx(1 - OMEGA_B / OMEGA_M, rel=1e-9)
    assert particles[1:4].min() >= 0 and particles[1:4].max() < float(found["BOX_SIZE"])
    threshold = np.loadtxt(folder / "Input__Flag_ParMassCell")
    assert 8 * particles[0, 0] < threshold[1] == pytest.approx(8 * particles[0, 0], rel=2e-6)
    assert (folder / "Input__TestProb").exists() and "--dual=ENPY" in (folder / "Input__Parameter").read_text()
    assert np.loadtxt(folder / "Input__Flag_Rho")[1] == pytest.approx(6 * OMEGA_B / OMEGA_M, rel=1e-6)
    dumps = (folder / "Input__DumpTable").read_text().splitlines()
    assert float(dumps[1].split()[1]) == pytest.approx(1 / (1 + Z)) and dumps[-1].startswith("***")


RAMSES_KEYS = "cosmo pic poisson hydro noutput aout filetype initfile(1) omega_b levelmin levelmax ngridmax npartmax m_refine gamma".split()


def test_ramses_deck(both):
    folder = exported(both, "ramses")
    text = (folder / "ramses.nml").read_text()
    found = {key: value for key, value in (line.split("!")[0].split("=") for line in text.splitlines() if "=" in line.split("!")[0])}
    assert not [key for key in RAMSES_KEYS if key not in found]
    assert (found["levelmin"].strip(), found["levelmax"].strip(), found["m_refine"].strip()) == ("5", "6", "12")
    assert all(f"&{name}_PARAMS\n" in text for name in ["RUN", "AMR", "OUTPUT", "INIT", "REFINE", "HYDRO"])
    # of masses of RAMSES' own gas; the recipe's cools from its decoupling on
    deviation = np.frombuffer((folder / "ics/ic_tempb").read_bytes(), "<f4", offset=52).reshape(32, -1)[:, 1:-1]
    decoupling = 137 * (OMEGA_B * H**2 / 0.022) ** 0.4
    expected = 2.7255 * (1 + Z_START) ** 2 / decoupling / 1.22
    assert 1.356e-2 * (1 + Z_START) ** 2 * (1 + deviation.mean(dtype="f8")) == pytest.approx(expected, rel=5e-3)
    load = f'ic_load(C, "{folder}/ics", #{{ box_mpc_h: 20, cells: 32, z: 49 }})'
    lines = (both[0] / "export.rhai").read_text().splitlines()
    (both[0] / "grafic.rhai").write_text("\n".join([*lines[:2], f"const IC = {load};", 'campaign("grafic", [ic_report(IC)])']))
    comove(both[0], "run", "grafic.rhai")
    made, loaded = [next(both[0].glob(f"{name}/ic_*/initial_condition.h5")) for name in ["export", "grafic"]]
    with h5py.File(made) as made, h5py.File(loaded) as loaded:
        for name in ["density", "momentum_x", "momentum_z"]:
            assert np.allclose(loaded[name][:], made[name][:], rtol=1e-5, atol=1e-7)
        cells = (np.arange(32) * BOX / 32)[:, None, None]
        expected = (made["displacement_z"][:] + cells) % BOX
        assert np.allclose(loaded["position_z"][:].reshape(32, 32, 32), expected, rtol=0, atol=1e-6)
        assert np.allclose(loaded["velocity_y"][:].reshape(32, 32, 32), made["velocity_y"][:], rtol=1e-6, atol=1e-8)


ENZO_KEYS = """ProblemType TopGridRank TopGridDimensions SelfGravity LeftFaceBoundaryCondition CosmologySimulationOmegaBaryonNow
CosmologySimulationOmegaCDMNow CosmologySimulationDensityName CosmologySimulationParticleVelocity1Name ComovingCoordinates
CosmologyHubbleConstantNow CosmologyComovingBoxSize CosmologyOmegaMatterNow CosmologyOmegaLambdaNow CosmologyInitialRedshift
CosmologyFinalRedshift GravitationalConstant CellFlaggingMethod MinimumOverDensityForRefinement MaximumRefinementLevel""".split()


def assigned(text, comment):
    """Keys and values of `key = value` lines."""
    lines = [line.split(comment)[0] for line in text.splitlines()]
    return {key.strip(): value.strip() for key, value in (line.split("=") for line in lines if "=" in line)}


def test_enzo_deck(both):
    folder = exported(both, "enzo")
    found = assigned((folder / "enzo.par").read_text(), "//")
    assert not [key for key in ENZO_KEYS if key not in found]
    assert (found["CellFlaggingMethod"], found["MinimumOverDensityForRefinement"]) == ("2 4", "6 8")
    assert float(found["CosmologyOutputRedshift[0]"]) == pytest.approx(Z)
    total = float(found["CosmologySimulationOmegaCDMNow"]) + float(found["CosmologySimulationOmegaBaryonNow"])
    assert total == pytest.approx(float(found["CosmologyOmegaMatterNow"]))
    # Enzo takes it for that of a mean molecular weight of 0.6
    temperature = float(found["CosmologySimulationInitialTemperature"]) * 1.22 / 0.6
    load = f'ic_load(C, "{folder}", #{{ box_mpc_h: 20, cells: 32, z: 49, temperature_k: {temperature} }})'
    lines = (both[0] / "export.rhai").read_text().splitlines()
    (both[0] / "of_enzo.rhai").write_text("\n".join([*lines[:2], f"const IC = {load};", 'campaign("of_enzo", [ic_report(IC)])']))
    comove(both[0], "run", "of_enzo.rhai")
    made, loaded = [next(both[0].glob(f"{name}/ic_*/initial_condition.h5")) for name in ["export", "of_enzo"]]
    with h5py.File(made) as made, h5py.File(loaded) as loaded:
        for name in ["density", "momentum_x", "momentum_z", "internal_energy"]:
            assert np.allclose(loaded[name][:], made[name][:], rtol=1e-9, atol=1e-12)
        cells = (np.arange(32) * BOX / 32)[:, None, None]
        expected = (made["displacement_z"][:] + cells) % BOX
        assert np.allclose(loaded["position_z"][:].reshape(32, 32, 32), expected, rtol=0, atol=1e-7)
        assert np.allclose(loaded["velocity_y"][:].reshape(32, 32, 32), made["velocity_y"][:], rtol=1e-6, atol=1e-8)


NYX_KEYS = """amr.n_cell amr.max_level geometry.prob_lo geometry.prob_hi geometry.is_periodic nyx.initial_z nyx.final_z nyx.comoving_OmM
nyx.comoving_h nyx.particle_init_type nyx.binary_particle_file nyx.do_grav nyx.do_hydro nyx.particle_move_type max_step""".split()


def test_nyx_deck(tmp_path):
    recipe(tmp_path, 16, False)
    comove(tmp_path, "export", "export.rhai", "nyx", "--for", "nyx")
    found = keys((tmp_path / "nyx/inputs").read_text(), "#")
    assert not [key for key in NYX_KEYS if key not in found]
    head = np.fromfile(tmp_path / "nyx/ics.nyx", "i8", 1)[0], *np.fromfile(tmp_path / "nyx/ics.nyx", "i4", 2, offset=8)
    assert head == (16**3, 3, 4)
    x, _, z, mass, *_, vz = np.fromfile(tmp_path / "nyx/ics.nyx", "f4", offset=16).reshape(-1, 7).astype("f8").T
    side = BOX / H
    assert 0 <= min(x.min(), z.min()) and max(x.max(), z.max()) <= side
    assert mass.sum() / side**3 == pytest.approx(OMEGA_M * CRITICAL * H**2, rel=1e-5)
    # the growing mode in km/s: ψ a H f, where ψ = x − q on a lattice
    comove(tmp_path, "run", "export.rhai", "--only", "Initial condition")
    with h5py.File(next(tmp_path.glob("export/ic_*/initial_condition.h5"))) as made:
        assert np.allclose(vz, made["velocity_z"][:].ravel() * 100 * (1 + Z_START), rtol=1e-5, atol=1e-4)
    recipe(tmp_path, 32, True)
    assert "gas; --for nyx writes dark matter alone" in comove(tmp_path, "export", "export.rhai", "no", "--for", "nyx", code=4)


@pytest.mark.parametrize("code", ["gadget", "swift"])
def test_an_exported_initial_condition_runs_alike(tmp_path, code):
    """The run from an export has the bits of the run from the recipe."""
    recipe(tmp_path, 16, False)
    comove(tmp_path, "run", "export.rhai")
    comove(tmp_path, "export", "export.rhai", code, "--for", code)
    text = (tmp_path / "export.rhai").read_text().splitlines()
    text[2] = f'const IC = ic_load(C, "{code}/ics.hdf5", #{{ box_mpc_h: 20, root: 16, z: 49 }});'
    (tmp_path / "again.rhai").write_text("\n".join(text))
    comove(tmp_path, "run", "again.rhai", "--dir", "again")
    first, second = [next(tmp_path.glob(f"{name}/evolve-*/output_z20.h5")) for name in ["export", "again"]]
    with h5py.File(first) as first, h5py.File(second) as second:
        for name in ["ParPosX", "ParPosY", "ParPosZ", "ParVelX", "ParVelY", "ParVelZ", "ParMass"]:
            assert np.array_equal(first["Particle"][name][:], second["Particle"][name][:]), name
        ids = second["Comove/particle_id"][:] - np.uint64(code == "swift")
        assert np.array_equal(first["Comove/particle_id"][:], ids)


def test_mistakes_name_the_remedy(both):
    folder, snapshot = both
    (folder / "there.hdf5").write_text("mine")
    said = comove(folder, "export", snapshot, "there.hdf5", "--format", "gadget", code=2)
    assert "there.hdf5: exists; give another name, or --overwrite" in said
    assert (folder / "there.hdf5").read_text() == "mine"
    assert "npy" in comove(folder, "export", snapshot, "--format", "hdf4", code=2)
    assert "gadget, swift, gamer, ramses, enzo, nyx" in comove(folder, "export", "export.rhai", "--for", "arepo", code=2)
    assert "--for" in comove(folder, "export", "export.rhai", "--format", "gadget", code=2)
    assert "--format" in comove(folder, "export", snapshot, "--for", "gadget", code=2)
    said = comove(folder, "export", snapshot, "x.vtkhdf", "--format", "vtkhdf", "--fields", "densty", code=4)
    assert 'unknown field "densty"; available: density, ' in said
    assert not (folder / "x.vtkhdf").exists()
