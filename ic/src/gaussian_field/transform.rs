//! The three-dimensional transform from modes to cells, in f64, with bits that depend neither on the number of threads nor
//! on that of ranks: each one-dimensional transform is one task's own, on one rank.
//!
//! Along z a rank transforms rows of its own n_y. Then ranks exchange parts of them, each for its own planes of cells, in
//! which it transforms along y and x.

use crate::slab;
use comove_sim::parallel::Communicator;
use rayon::prelude::*;
use realfft::RealFftPlanner;
use rustfft::FftPlanner;
use rustfft::num_complex::Complex;
use std::ops::Range;

/// Of messages.
const TAG: u32 = 4;

/// A rank receives at most so many bytes at a time, or an eighth of what it receives in all, whichever is more.
const AT_A_TIME: usize = 1 << 25;

/// Modes n_x = 0 … N_x/2 of a row.
pub(crate) fn row_length(cells: [usize; 3]) -> usize {
    cells[0] / 2 + 1
}

/// The n_y, as indices, whose modes a rank has.
pub(super) fn rows(cells: [usize; 3], rank: usize, ranks: usize) -> Range<usize> {
    slab::part(cells[1], 1, rank, ranks)
}

/// f(i, j, k) = Σ_n modes_n e^(2πi (n_x i/N_x + n_y j/N_y + n_z k/N_z)) for Hermitian modes. Collective.
///
/// * `modes`: of the rank's own n_y ([`rows`]), `[ny, nz, nx]`, n_x = 0 … N_x/2 fastest; N_x even
/// * returns the rank's own planes ([`slab::planes`]), `[z, y, x]`, x fastest
pub(crate) fn to_cells(communicator: &Communicator, cells: [usize; 3], mut modes: Vec<Complex<f64>>) -> Vec<f64> {
    let [nx, ny, nz] = cells;
    let row = row_length(cells);
    let (rank, ranks) = (communicator.rank(), communicator.size());
    let own = rows(cells, rank, ranks);
    assert_eq!(modes.len(), own.len() * nz * row);
    let mut planner = FftPlanner::new();
    let along_y = planner.plan_fft_inverse(ny);
    let along_z = planner.plan_fft_inverse(nz);
    let along_x = RealFftPlanner::new().plan_fft_inverse(nx);

    // Along z: a plane of fixed n_y is contiguous; its columns are gathered, transformed and put back.
    modes.par_chunks_mut(nz * row).for_each(|plane| {
        let mut columns = vec![Complex::ZERO; nz * row];
        for (z, line) in plane.chunks(row).enumerate() {
            line.iter().enumerate().for_each(|(x, mode)| columns[x * nz + z] = *mode);
        }
        along_z.process(&mut columns);
        for (z, line) in plane.chunks_mut(row).enumerate() {
            line.iter_mut().enumerate().for_each(|(x, mode)| *mode = columns[x * nz + z]);
        }
    });

    // Along y and x: each plane of fixed z gathers its modes from all planes of n_y.
    let mut field = vec![0.0; nx * ny * slab::planes(cells, rank, ranks).len()];
    let mut rest = field.as_mut_slice();
    for at in parts(cells, ranks) {
        let blocks = transpose(communicator, cells, &modes, &at);
        let here = &at[rank];
        let (part, behind) = rest.split_at_mut(here.len() * nx * ny);
        rest = behind;
        part.par_chunks_mut(nx * ny).enumerate().for_each(|(n, plane)| {
            let mut columns = vec![Complex::ZERO; ny * row];
            for (peer, block) in blocks.iter().enumerate() {
                for (y, of_peer) in rows(cells, peer, ranks).enumerate() {
                    let mut put = |x: usize, mode: Complex<f64>| columns[x * ny + of_peer] = mode;
                    if peer == rank {
                        let line = &modes[(y * nz + here.start + n) * row..][..row];
                        line.iter().enumerate().for_each(|(x, mode)| put(x, *mode));
                    } else {
                        let line = &block[(y * here.len() + n) * 2 * row..][..2 * row];
                        line.chunks_exact(2).enumerate().for_each(|(x, mode)| put(x, Complex::new(mode[0], mode[1])));
                    }
                }
            }
            along_y.process(&mut columns);
            let mut line = vec![Complex::ZERO; row];
            let mut scratch = along_x.make_scratch_vec();
            for (y, output) in plane.chunks_mut(nx).enumerate() {
                for (x, value) in line.iter_mut().enumerate() {
                    *value = columns[x * ny + y];
                }
                // Real by symmetry; what is left is round-off, which the real transform refuses to see.
                line[0].im = 0.0;
                line[row - 1].im = 0.0;
                along_x.process_with_scratch(&mut line, output, &mut scratch).expect("lengths of the plan");
            }
        });
    }
    field
}

/// The modes of a field: the inverse of [`to_cells`]. Collective.
///
/// * `field`: the rank's own planes, `[z, y, x]`, x fastest
/// * returns the modes of the rank's own n_y, `[ny, nz, nx]`
pub(crate) fn to_modes(communicator: &Communicator, cells: [usize; 3], field: &[f64]) -> Vec<Complex<f64>> {
    let [nx, ny, nz] = cells;
    let row = row_length(cells);
    let (rank, ranks) = (communicator.rank(), communicator.size());
    let mut planner = FftPlanner::new();
    let (along_y, along_z) = (planner.plan_fft_forward(ny), planner.plan_fft_forward(nz));
    let along_x = RealFftPlanner::new().plan_fft_forward(nx);
    // by plane of fixed z: `[x, ny]`
    let of_plane = |plane: &[f64]| {
        let mut columns = vec![Complex::ZERO; ny * row];
        let mut line = vec![Complex::ZERO; row];
        for (y, cells) in plane.chunks(nx).enumerate() {
            along_x.process(&mut cells.to_vec(), &mut line).expect("lengths of the plan");
            line.iter().enumerate().for_each(|(x, mode)| columns[x * ny + y] = *mode);
        }
        along_y.process(&mut columns);
        columns
    };
    let planes: Vec<Vec<Complex<f64>>> = field.par_chunks(nx * ny).map(of_plane).collect();
    // for each rank its n_y of these planes: `[ny, x]` of each
    let packed = |peer: usize| {
        let lines = planes.iter().flat_map(|plane| rows(cells, peer, ranks).map(move |y| (plane, y)));
        let modes = lines.flat_map(|(plane, y)| (0..row).map(move |x| plane[x * ny + y]));
        bytemuck::cast_slice(&modes.flat_map(|mode| [mode.re, mode.im]).collect::<Vec<f64>>()).to_vec()
    };
    let blocks = communicator.exchange((0..ranks).map(packed).collect());
    drop(planes);
    let blocks: Vec<Vec<f64>> = blocks.iter().map(|block| bytemuck::pod_collect_to_vec(block)).collect();
    let own = rows(cells, rank, ranks).len();
    let scale = 1.0 / (nx * ny * nz) as f64;
    let mut modes = vec![Complex::ZERO; own * nz * row];
    modes.par_chunks_mut(nz * row).enumerate().for_each(|(y, modes)| {
        let mut columns = vec![Complex::ZERO; nz * row];
        for (peer, block) in blocks.iter().enumerate() {
            for (n, z) in slab::planes(cells, peer, ranks).enumerate() {
                let line = &block[(n * own + y) * 2 * row..][..2 * row];
                for (x, mode) in line.chunks_exact(2).enumerate() {
                    columns[x * nz + z] = Complex::new(mode[0], mode[1]) * scale;
                }
            }
        }
        along_z.process(&mut columns);
        for (z, line) in modes.chunks_mut(row).enumerate() {
            line.iter_mut().enumerate().for_each(|(x, mode)| *mode = columns[x * nz + z]);
        }
    });
    modes
}

/// The planes of cells that ranks take at a time, each of its own: `[part][rank]`.
fn parts(cells: [usize; 3], ranks: usize) -> impl Iterator<Item = Vec<Range<usize>>> {
    let most = slab::planes(cells, 0, ranks).len();
    let bytes = row_length(cells) * cells[1] * size_of::<Complex<f64>>();
    let at_a_time = if ranks == 1 { most } else { (AT_A_TIME / bytes).max(most.div_ceil(8)) };
    (0..most).step_by(at_a_time).map(move |begin| {
        let part = |own: Range<usize>| (own.start + begin).min(own.end)..(own.start + begin + at_a_time).min(own.end);
        (0..ranks).map(|rank| part(slab::planes(cells, rank, ranks))).collect()
    })
}

/// Sends every rank the own modes of its planes, for those of this rank's planes from each: `[ny of the peer, planes, nx]`,
/// real and imaginary parts. Of this rank itself nothing. Collective.
///
/// * `at`: the planes, by rank
fn transpose(
    communicator: &Communicator,
    cells: [usize; 3],
    modes: &[Complex<f64>],
    at: &[Range<usize>],
) -> Vec<Vec<f64>> {
    let (rank, ranks) = (communicator.rank(), communicator.size());
    let (row, nz) = (row_length(cells), cells[2]);
    let peers = || (0..ranks).filter(|&peer| peer != rank);
    let packed = |peer: usize| {
        let mut block = Vec::with_capacity(rows(cells, rank, ranks).len() * at[peer].len() * 2 * row);
        for plane in modes.chunks_exact(nz * row) {
            let lines = &plane[at[peer].start * row..at[peer].end * row];
            block.extend(lines.iter().flat_map(|mode| [mode.re, mode.im]));
        }
        block
    };
    let sent: Vec<(usize, Vec<f64>)> = peers().map(|peer| (peer, packed(peer))).collect();
    let length = |peer: usize| rows(cells, peer, ranks).len() * at[rank].len() * 2 * row;
    let mut blocks: Vec<Vec<f64>> =
        (0..ranks).map(|peer| vec![0.0; if peer == rank { 0 } else { length(peer) }]).collect();
    let sends = sent.iter().filter(|(_, block)| !block.is_empty());
    let sends: Vec<(usize, &[u8])> = sends.map(|(peer, block)| (*peer, bytemuck::cast_slice(block))).collect();
    let receives = blocks.iter_mut().enumerate().filter(|(_, block)| !block.is_empty());
    let mut receives: Vec<(usize, &mut [u8])> =
        receives.map(|(peer, block)| (peer, bytemuck::cast_slice_mut(block))).collect();
    communicator.communicate(TAG, &sends, &mut receives, || ());
    blocks
}
