// Exchanges of particles: the twin of exchange/cpu.rs.
#include "level/group_locator.cuh"
#include "operations/particles/overflow.cuh"

constexpr int COLUMNS = 8;

struct Columns {
    uint32_t *columns[COLUMNS];
    uint64_t count;
};

/// A box of cells of a group, and the cells of all boxes before it (messages/pieces.rs).
struct Piece {
    uint32_t slot;
    uint8_t first[3];
    uint8_t cells[3];
    uint32_t at;
};
static_assert(sizeof(Piece) == 16, "as exchange/cuda.rs passes it");

__device__ inline size_t particle() { return size_t(blockIdx.x) * blockDim.x + threadIdx.x; }

/// Lists the particles that are in groups of other ranks, of levels from `from` on, in any order.
extern "C" __global__ void list_foreign_f32(GroupLocator locator, int finest, Columns particles, int from, uint32_t *list,
                                            unsigned *found) {
    const size_t n = particle();
    if (n >= particles.count) return;
    const uint32_t position[3] = {particles.columns[0][n], particles.columns[1][n], particles.columns[2][n]};
    int level = finest;
    const uint32_t slot = locator.home(position, level);
    if (level >= from && locator.numbers[slot] == 0) list[atomicAdd(found, 1u)] = uint32_t(n);
}

extern "C" __global__ void count_in_groups_f32(GroupLocator locator, int finest, Columns particles, uint32_t lowest,
                                               unsigned *counts) {
    const size_t n = particle();
    if (n >= particles.count) return;
    const uint32_t position[3] = {particles.columns[0][n], particles.columns[1][n], particles.columns[2][n]};
    const uint32_t number = locator.numbers[locator.home(position, finest)];
    if (number >= lowest) atomicAdd(counts + (number - lowest), 1u);
}

extern "C" __global__ void gather_column_f32(uint64_t count, const uint32_t *list, const uint32_t *column,
                                             uint32_t *values) {
    const size_t n = particle();
    if (n < count) values[n] = column[list[n]];
}

extern "C" __global__ void put_column_f32(uint64_t count, const uint32_t *list, const uint32_t *values,
                                          uint32_t *column) {
    const size_t n = particle();
    if (n < count) column[list[n]] = values[n];
}

/// The place in the pool of cell `n` of a piece.
__device__ inline size_t place(const Piece &piece, int n) {
    const int i = piece.first[0] + n % piece.cells[0];
    const int j = piece.first[1] + n / piece.cells[0] % piece.cells[1];
    const int k = piece.first[2] + n / (piece.cells[0] * piece.cells[1]);
    return size_t(piece.slot) * GROUP_CELLS + cell(i, j, k);
}

__device__ inline int cells_of(const Piece &piece) { return piece.cells[0] * piece.cells[1] * piece.cells[2]; }

extern "C" __global__ void gather_weights_f32(const Piece *pieces, const uint64_t *mass, uint64_t *weights) {
    const Piece piece = pieces[blockIdx.x];
    for (int n = threadIdx.x; n < cells_of(piece); n += blockDim.x) weights[piece.at + n] = mass[place(piece, n)];
}

extern "C" __global__ void add_weights_f32(const Piece *pieces, const unsigned long long *weights,
                                           unsigned long long *mass, unsigned long long *overflow) {
    const Piece piece = pieces[blockIdx.x];
    for (int n = threadIdx.x; n < cells_of(piece); n += blockDim.x) {
        if (weights[piece.at + n] != 0) add_weight(mass, place(piece, n), weights[piece.at + n], overflow);
    }
}
