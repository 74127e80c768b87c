// Pieces of groups packed to messages and unpacked: the twin of pieces/cpu.rs. One block a field of a piece.
#include "cuda/layout.cuh"

/// A box of cells of a group, and the cells of the message before it (pieces/mod.rs).
struct Piece {
    uint32_t slot;
    uint8_t first[3];
    uint8_t cells[3];
    uint32_t at;
};
static_assert(sizeof(Piece) == 16, "as pieces/cuda.rs passes it");

/// Calls copy(place in the pool, place in the message) for every cell of the block's field.
template <typename Copy> __device__ void each_cell(int fields, const Piece *pieces, Copy copy) {
    const Piece piece = pieces[blockIdx.x / fields];
    const int field = blockIdx.x % fields;
    const int nx = piece.cells[0], ny = piece.cells[1], count = nx * ny * piece.cells[2];
    const size_t group = (size_t(piece.slot) * fields + field) * GROUP_CELLS;
    const size_t part = size_t(piece.at) * fields + size_t(field) * count;
    for (int n = threadIdx.x; n < count; n += blockDim.x) {
        const int i = n % nx, j = n / nx % ny, k = n / (nx * ny);
        copy(group + cell(piece.first[0] + i, piece.first[1] + j, piece.first[2] + k), part + n);
    }
}

template <typename T> __device__ void pack_pieces(int fields, const T *pool, const Piece *pieces, T *message) {
    each_cell(fields, pieces, [&](size_t from, size_t to) { message[to] = pool[from]; });
}

template <typename T> __device__ void unpack_pieces(int fields, const T *message, const Piece *pieces, T *pool) {
    each_cell(fields, pieces, [&](size_t to, size_t from) { pool[to] = message[from]; });
}

#define BOTH(T, suffix)                                                                                                \
    extern "C" __global__ void pack_pieces_##suffix(int fields, const T *pool, const Piece *pieces, T *message) {      \
        pack_pieces<T>(fields, pool, pieces, message);                                                                 \
    }                                                                                                                  \
    extern "C" __global__ void unpack_pieces_##suffix(int fields, const T *message, const Piece *pieces, T *pool) {    \
        unpack_pieces<T>(fields, message, pieces, pool);                                                               \
    }
BOTH(float, f32)
BOTH(double, f64)
