// Messages packed and unpacked: the twin of messages/cpu.rs, and the flags between GPUs that reach each other
// (messages/mod.rs). One block a field of a piece, or a row; one more where messages are waited for.
#include "device/overflow.cuh"
#include "layout.cuh"

/// A box of cells of a group, and the cells of the message before it (messages/pieces.rs).
struct Piece {
    uint32_t slot;
    uint8_t first[3];
    uint8_t cells[3];
    uint32_t at;
};
static_assert(sizeof(Piece) == 16, "as messages/cuda.rs passes it");

constexpr int MOST_PEERS = 64;

/// Ranks and their parts of a message: the twin of messages/cuda.rs.
struct Peers {
    uint32_t count;
    uint32_t starts[MOST_PEERS + 1]; // units before the part of each, then all
    uint64_t bases[MOST_PEERS];      // where unit 0 would lie if the memory of the part went on before it
    uint64_t *flags[MOST_PEERS];     // to raise, or to wait for; null where the host carries the message
    uint64_t serials[MOST_PEERS];    // to what

    /// Whether unit `at` is for one of them.
    __device__ bool have(uint32_t at) const { return starts[0] <= at && at < starts[count]; }

    /// Whose unit `at` is: the last part that begins there or before, as the ones without units begin where the next does.
    __device__ uint32_t of(uint32_t at) const {
        uint32_t peer = 0;
        while (peer + 1 < count && starts[peer + 1] <= at) peer++;
        return peer;
    }
};

/// What the blocks of a GPU count together, and the time that its exchanges take.
struct Progress {
    uint32_t packed, unpacked;         // blocks that are done
    uint64_t began, exchanging, waiting; // nanoseconds
};

__device__ inline uint64_t nanoseconds() {
    uint64_t now = 0;
#ifdef __CUDA_ARCH__
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
#endif
    return now;
}

/// Raises a flag in this GPU's memory or another's, behind everything that this thread knows to be written.
__device__ inline void raise(uint64_t *flag, uint64_t serial) {
#ifdef __CUDA_ARCH__
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(flag), "l"(serial) : "memory");
#else
    *flag = serial;
#endif
}

/// Waits until a flag is raised so far; what its raiser has written before can be read then.
__device__ inline void await(const uint64_t *flag, uint64_t serial) {
#ifdef __CUDA_ARCH__
    uint64_t raised;
    do asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(raised) : "l"(flag) : "memory");
    while (raised < serial);
#else
    while (*static_cast<const volatile uint64_t *>(flag) < serial) {}
#endif
}

/// At the start of packing.
__device__ void begin(Progress *progress) {
    if (blockIdx.x == 0 && threadIdx.x == 0) progress->began = nanoseconds();
}

/// At its end: the last block raises the flags, behind what all have written.
__device__ void sent(const Peers &peers, Progress *progress) {
    __syncthreads();
    if (threadIdx.x != 0) return;
    __threadfence_system();
    if (atomicAdd(&progress->packed, 1u) + 1 < gridDim.x) return;
    progress->packed = 0;
    __threadfence_system();
    for (uint32_t peer = 0; peer < peers.count; peer++)
        if (peers.flags[peer]) raise(peers.flags[peer], peers.serials[peer]);
}

/// Waits for the part that unit `at` lies in: all threads of a block call it.
__device__ void arrived(const Peers &peers, uint32_t at) {
    const uint32_t peer = peers.of(at);
    if (threadIdx.x == 0 && peers.flags[peer]) await(peers.flags[peer], peers.serials[peer]);
    __syncthreads();
}

/// The first block's part of unpacking: waits for all, also for those that send nothing but a flag.
__device__ void all_arrived(const Peers &peers, Progress *progress) {
    const uint64_t began = nanoseconds();
    if (threadIdx.x < peers.count && peers.flags[threadIdx.x])
        await(peers.flags[threadIdx.x], peers.serials[threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) progress->waiting += nanoseconds() - began;
}

/// At the end of unpacking.
__device__ void finish(Progress *progress) {
    __syncthreads();
    if (threadIdx.x != 0 || atomicAdd(&progress->unpacked, 1u) + 1 < gridDim.x) return;
    progress->unpacked = 0;
    progress->exchanging += nanoseconds() - progress->began;
}

/// Where unit `at` lies in the message that it belongs to.
template <typename T> __device__ T *unit_of(const Peers &peers, uint32_t at, int values) {
    return reinterpret_cast<T *>(peers.bases[peers.of(at)] + uint64_t(at) * values * sizeof(T));
}

/// Calls copy(place in the group's field, place in the piece) for every cell of a piece.
template <typename Copy> __device__ void each_cell(const Piece &piece, Copy copy) {
    const int nx = piece.cells[0], ny = piece.cells[1], count = nx * ny * piece.cells[2];
    for (int n = threadIdx.x; n < count; n += blockDim.x) {
        const int i = n % nx, j = n / nx % ny, k = n / (nx * ny);
        copy(cell(piece.first[0] + i, piece.first[1] + j, piece.first[2] + k), n);
    }
}

__device__ inline int cell_count(const Piece &piece) { return piece.cells[0] * piece.cells[1] * piece.cells[2]; }

template <typename T>
__device__ void pack_pieces(int fields, const T *pool, const Piece *pieces, uint32_t count, const Peers &peers,
                            Progress *progress) {
    begin(progress);
    if (blockIdx.x < count * fields) {
        const Piece piece = pieces[blockIdx.x / fields];
        const int field = blockIdx.x % fields;
        if (peers.have(piece.at)) {
            const T *from = pool + (size_t(piece.slot) * fields + field) * GROUP_CELLS;
            T *to = unit_of<T>(peers, piece.at, fields) + size_t(field) * cell_count(piece);
            each_cell(piece, [&](int at, int n) { to[n] = from[at]; });
        }
    }
    sent(peers, progress);
}

template <typename T>
__device__ void unpack_pieces(int fields, const Piece *pieces, T *pool, const Peers &peers, Progress *progress) {
    if (blockIdx.x == 0) {
        all_arrived(peers, progress);
    } else {
        const Piece piece = pieces[(blockIdx.x - 1) / fields];
        const int field = (blockIdx.x - 1) % fields;
        if (peers.have(piece.at)) {
            arrived(peers, piece.at);
            T *to = pool + (size_t(piece.slot) * fields + field) * GROUP_CELLS;
            const T *from = unit_of<T>(peers, piece.at, fields) + size_t(field) * cell_count(piece);
            each_cell(piece, [&](int at, int n) { to[at] = from[n]; });
        }
    }
    finish(progress);
}

/// Adds the weights of pieces, which may overlap, to the cells of a pool, [slots, 16, 16, 16].
extern "C" __global__ void add_weights_f64(const Piece *pieces, unsigned long long *pool, unsigned long long *overflow,
                                           const __grid_constant__ Peers peers, Progress *progress) {
    if (blockIdx.x == 0) {
        all_arrived(peers, progress);
    } else {
        const Piece piece = pieces[blockIdx.x - 1];
        if (peers.have(piece.at)) {
            arrived(peers, piece.at);
            const size_t group = size_t(piece.slot) * GROUP_CELLS;
            const unsigned long long *from = unit_of<unsigned long long>(peers, piece.at, 1);
            each_cell(piece, [&](int at, int n) {
                if (from[n] != 0) add_weight(pool, group + at, from[n], overflow);
            });
        }
    }
    finish(progress);
}

template <typename T>
__device__ void pack_rows(int values, const T *array, const uint32_t *rows, uint32_t count, const Peers &peers,
                          Progress *progress) {
    begin(progress);
    if (blockIdx.x < count && peers.have(blockIdx.x)) {
        const T *from = array + size_t(rows[blockIdx.x]) * values;
        T *to = unit_of<T>(peers, blockIdx.x, values);
        for (int n = threadIdx.x; n < values; n += blockDim.x) to[n] = from[n];
    }
    sent(peers, progress);
}

template <typename T>
__device__ void unpack_rows(int values, const uint32_t *rows, T *array, const Peers &peers, Progress *progress) {
    const uint32_t row = blockIdx.x - 1;
    if (blockIdx.x == 0) {
        all_arrived(peers, progress);
    } else if (peers.have(row)) {
        arrived(peers, row);
        T *to = array + size_t(rows[row]) * values;
        const T *from = unit_of<T>(peers, row, values);
        for (int n = threadIdx.x; n < values; n += blockDim.x) to[n] = from[n];
    }
    finish(progress);
}

#define BOTH(T, suffix)                                                                                                \
    extern "C" __global__ void pack_pieces_##suffix(int fields, const T *pool, const Piece *pieces, uint32_t count,    \
                                                    const __grid_constant__ Peers peers, Progress *progress) {         \
        pack_pieces<T>(fields, pool, pieces, count, peers, progress);                                                  \
    }                                                                                                                  \
    extern "C" __global__ void unpack_pieces_##suffix(int fields, const Piece *pieces, T *pool,                        \
                                                      const __grid_constant__ Peers peers, Progress *progress) {       \
        unpack_pieces<T>(fields, pieces, pool, peers, progress);                                                       \
    }                                                                                                                  \
    extern "C" __global__ void pack_rows_##suffix(int values, const T *array, const uint32_t *rows, uint32_t count,    \
                                                  const __grid_constant__ Peers peers, Progress *progress) {           \
        pack_rows<T>(values, array, rows, count, peers, progress);                                                     \
    }                                                                                                                  \
    extern "C" __global__ void unpack_rows_##suffix(int values, const uint32_t *rows, T *array,                        \
                                                    const __grid_constant__ Peers peers, Progress *progress) {         \
        unpack_rows<T>(values, rows, array, peers, progress);                                                          \
    }
BOTH(float, f32)
BOTH(double, f64)
