// Particles: the twin of particles/cpu.rs. One thread a particle. Masses and sums are integers, so no order counts.
#include "level/group_locator.cuh"
#include "level/report.cuh"
#include "device/overflow.cuh"
#include "operations/particles/columns.cuh"

/// Particles whose sums are taken together.
constexpr int BLOCK = 4096;

struct Drift {
    double factors[3];
};

extern "C" __global__ void drift_particles_f32(Columns particles, Drift drift) {
    const size_t n = particle();
    if (n >= particles.count) return;
    for (int axis = 0; axis < 3; axis++) {
        uint32_t &x = particles.columns[axis][n];
        x = drifted(x, particles.velocity(axis, n), drift.factors[axis]);
    }
}

extern "C" __global__ void clear_mass_f32(const uint32_t *slots, uint64_t *mass) {
    uint64_t *group = mass + size_t(slots[blockIdx.x]) * GROUP_CELLS;
    for (int c = threadIdx.x; c < GROUP_CELLS; c += blockDim.x) group[c] = 0;
}

/// How many groups further a cell is that is counted from a group's first one.
__device__ inline int groups_from(int cell) { return cell < 0 ? -1 : cell >= GROUP ? 1 : 0; }

/// The groups around and including one of a level.
struct Neighbourhood {
    const GroupLocator &locator;
    int level;
    uint32_t group[3];
    uint32_t own;

    /// The slot of the group that is (x, y, z) from this one, each -1, 0 or 1.
    __device__ uint32_t beside(int x, int y, int z) const {
        if (!(x | y | z)) return own;
        const int step[3] = {x, y, z};
        uint32_t at[3];
#pragma unroll
        for (int axis = 0; axis < 3; axis++) {
            const uint32_t groups = locator.root[axis] << level;
            const uint32_t moved = group[axis] + step[axis];
            at[axis] = moved == groups ? 0 : moved == ~0u ? groups - 1 : moved;
        }
        return locator.slot(level, at);
    }
};

/// What a particle sees of the groups around it, and the N cells along each axis that share its mass.
template <int N> struct Around : Neighbourhood {
    int lower[3]; // the first of the cells, counted from the group's first one
    uint32_t weights[3][N];

    __device__ Around(const GroupLocator &locator, int level, const uint32_t (&position)[3], int bits = WEIGHT_BITS)
        : Neighbourhood{locator, level} {
        static_assert(N == 2);
#pragma unroll
        for (int axis = 0; axis < 3; axis++) {
            const Cloud cloud(position[axis], locator.cells(axis, level), bits);
            place(axis, cloud.cell, cloud.lower, cloud.weights);
        }
        own = locator.slot(level, group);
    }

    /// Whether the patch that contains the particle is refined.
    __device__ bool is_refined(const uint32_t (&position)[3]) const {
        uint32_t octant = 0;
#pragma unroll
        for (int axis = 0; axis < 3; axis++) {
            const uint32_t cell = (uint64_t(position[axis]) * locator.cells(axis, level)) >> 32;
            octant |= (cell / PATCH & 1) << axis;
        }
        return own != NONE && locator.children[size_t(own) * OCTANTS + octant] != NONE;
    }

    /// Of a particle of the next coarser level.
    __device__ static Around of_coarser(const GroupLocator &locator, int level, const uint32_t (&position)[3],
                                        int bits) {
        Around around(Neighbourhood{locator, level});
#pragma unroll
        for (int axis = 0; axis < 3; axis++) {
            const WideCloud cloud(position[axis], locator.cells(axis, level), bits);
            around.place(axis, cloud.cell, -1, cloud.weights);
        }
        around.own = locator.slot(level, around.group);
        return around;
    }

    /// Adds the particle's mass, in weights of class 0, to the cells.
    __device__ void deposit(uint32_t scale, unsigned long long *mass, unsigned long long *overflow) const {
        uint32_t slots[8];
        if (!find_slots(slots)) return;
        for_each_cell([&](int i, int j, int k) { add(slots, i, j, k, weight(scale, i, j, k), mass, overflow); });
    }

    /// Deposits the particles of a warp, whose threads all call it: the masses of those with the same cells are summed first.
    ///
    /// * `is_there`: false in a thread without a particle; `bits`: of a weight along an axis
    __device__ void deposit_together(bool is_there, uint32_t scale, int bits, unsigned long long *mass,
                                     unsigned long long *overflow) const {
        uint32_t slots[8];
        bool is_alone = is_there;
        // halves of 32 weights add up to less than 2^32
        uint32_t left = __ballot_sync(~0u, is_there && uint64_t(scale) << 3 * bits <= 1ull << 2 * HALF - 1);
        for (int sum = 0; sum < MOST_SUMS && left; sum++) {
            const int first = __ffs(left) - 1, lane = threadIdx.x % 32;
            bool is_alike = left >> lane & 1;
#pragma unroll
            for (int axis = 0; axis < 3; axis++) {
                const uint32_t at = group[axis] * GROUP + lower[axis];
                is_alike &= __shfl_sync(~0u, at, first) == at;
            }
            const uint32_t alike = __ballot_sync(~0u, is_alike);
            left &= ~alike;
            if (__popc(alike) < FEWEST_ALIKE) continue;
            is_alone &= !is_alike;
            const bool adds = lane == first && find_slots(slots);
            for_each_cell([&](int i, int j, int k) {
                const unsigned long long own = is_alike ? weight(scale, i, j, k) : 0;
                const unsigned long long low = __reduce_add_sync(~0u, uint32_t(own) & ((1u << HALF) - 1));
                const unsigned long long high = __reduce_add_sync(~0u, uint32_t(own >> HALF));
                if (adds) add(slots, i, j, k, low + (high << HALF), mass, overflow);
            });
        }
        if (is_alone) deposit(scale, mass, overflow);
    }

  private:
    /// Bits of the lower half of a weight that is added to others.
    static constexpr int HALF = 27;
    /// Sums that a warp makes before its other particles are added one by one, and particles of a sum at the least.
    static constexpr int MOST_SUMS = 8, FEWEST_ALIKE = 3;

    template <typename Cell> __device__ static void for_each_cell(Cell cell) {
#pragma unroll
        for (int corner = 0; corner < N * N * N; corner++) cell(corner % N, corner / N % N, corner / (N * N));
    }

    __device__ unsigned long long weight(uint32_t scale, int i, int j, int k) const {
        return (unsigned long long)(weights[0][i]) * scale * weights[1][j] * weights[2][k];
    }

    /// Adds a weight to a cell, if it is of a group that is there.
    __device__ void add(const uint32_t (&slots)[8], int i, int j, int k, unsigned long long weight,
                        unsigned long long *mass, unsigned long long *overflow) const {
        const bool x = is_further(0, i), y = is_further(1, j), z = is_further(2, k);
        const uint32_t near = y ? (x ? slots[3] : slots[2]) : x ? slots[1] : slots[0];
        const uint32_t far = y ? (x ? slots[7] : slots[6]) : x ? slots[5] : slots[4];
        const uint32_t slot = z ? far : near;
        if (weight == 0 || slot == NONE) return;
        const int mask = GROUP - 1;
        const int place = cell((lower[0] + i) & mask, (lower[1] + j) & mask, (lower[2] + k) & mask);
        add_weight(mass, size_t(slot) * GROUP_CELLS + place, weight, overflow);
    }

    /// True where the n-th cell along an axis is in another group than the first.
    __device__ bool is_further(int axis, int n) const { return groups_from(lower[axis] + n) != groups_from(lower[axis]); }

    /// The slots of the groups of the cells; bits of an index are set for the further group along x, y, z. False without slots.
    __device__ bool find_slots(uint32_t (&slots)[8]) const {
        bool any = false;
#pragma unroll
        for (int corner = 0; corner < 8; corner++) {
            int step[3];
            int same = -1; // an axis along which there is no further group, which this corner is further along
#pragma unroll
            for (int axis = 0; axis < 3; axis++) {
                const int end = corner >> axis & 1 ? N - 1 : 0;
                step[axis] = groups_from(lower[axis] + end);
                if (end && !is_further(axis, end)) same = axis;
            }
            slots[corner] = same >= 0 ? NONE : beside(step[0], step[1], step[2]);
            any |= slots[corner] != NONE;
        }
        return any;
    }

    __device__ explicit Around(const Neighbourhood &neighbourhood) : Neighbourhood(neighbourhood) {}

    __device__ void place(int axis, uint32_t cell, int first, const uint32_t (&weights_of_axis)[N]) {
        group[axis] = cell / GROUP;
        lower[axis] = int(cell % GROUP) + first;
#pragma unroll
        for (int n = 0; n < N; n++) weights[axis][n] = weights_of_axis[n];
    }
};

__device__ inline void position_after(const Columns &particles, size_t n, const Drift &drift, uint32_t (&position)[3]) {
    for (int axis = 0; axis < 3; axis++) {
        position[axis] = drifted(particles.columns[axis][n], particles.velocity(axis, n), drift.factors[axis]);
    }
}

extern "C" __global__ void deposit_particles_f32(GroupLocator locator, int level, Columns particles,
                                                 Drift drift, WeightUnit unit, unsigned long long *mass,
                                                 unsigned long long *overflow) {
    const size_t n = particle();
    if (n >= particles.count) return;
    uint32_t position[3];
    position_after(particles, n, drift, position);
    const uint32_t scale = unit.of_kind[particles.kind(n)];
    Around<2>(locator, level, position, unit.bits).deposit(scale, mass, overflow);
}

/// Deposits particles of a level at least four levels finer (MUCH_FINER in cuda.rs), whose groups are in a few cells.
extern "C" __global__ void deposit_finer_particles_f32(GroupLocator locator, int level, Columns particles, Drift drift,
                                                       WeightUnit unit, unsigned long long *mass,
                                                       unsigned long long *overflow) {
    const bool is_there = particle() < particles.count;
    const size_t n = is_there ? particle() : 0;
    uint32_t position[3];
    position_after(particles, n, drift, position);
    const uint32_t scale = unit.of_kind[particles.kind(n)];
    Around<2>(locator, level, position, unit.bits).deposit_together(is_there, scale, unit.bits, mass, overflow);
}

extern "C" __global__ void deposit_coarser_particles_f32(GroupLocator locator, int level, Columns particles, Drift drift,
                                                         WeightUnit unit, unsigned long long *mass,
                                                         unsigned long long *overflow) {
    const size_t n = particle();
    if (n >= particles.count) return;
    uint32_t position[3];
    position_after(particles, n, drift, position);
    const uint32_t scale = unit.of_kind[particles.kind(n)];
    Around<3>::of_coarser(locator, level, position, unit.bits).deposit(scale, mass, overflow);
}

template <typename T>
__device__ void matter_density(const uint32_t *slots, const uint64_t *mass, double unit, const T *fluid, int fields,
                               T *density) {
    const size_t slot = slots[blockIdx.x];
    for (int c = threadIdx.x; c < GROUP_CELLS; c += blockDim.x) {
        const T gas = fluid ? fluid[slot * fields * GROUP_CELLS + DENSITY * GROUP_CELLS + c] : T(0);
        density[slot * GROUP_CELLS + c] = gas + T(double(mass[slot * GROUP_CELLS + c]) * unit);
    }
}

template <typename T> struct Potential {
    const T *pool;
    const T *from; // null: the next coarser level is in the pool
    const T *to;
    const uint32_t *places;
    T weight;

    __device__ T at(uint32_t slot, int cell, bool is_coarser) const {
        if (is_coarser && from && places[slot] != NONE) {
            const size_t n = size_t(places[slot]) * GROUP_CELLS + cell;
            return from[n] + weight * (to[n] - from[n]);
        }
        return pool[size_t(slot) * GROUP_CELLS + cell];
    }
};

/// The weight of second cells in the gradient that particles of refined levels feel.
constexpr double SECOND_CELLS = 0.5;

/// The cells -2 to 3 from a particle's lower one along an axis: which of two groups each is in, and its place there.
struct Reach {
    int ends[2];
    bool further[6];
    int place[6];

    __device__ Reach(int lower) {
        ends[0] = groups_from(lower - 2);
        ends[1] = groups_from(lower + 3);
#pragma unroll
        for (int n = 0; n < 6; n++) {
            further[n] = groups_from(lower + n - 2) != ends[0];
            place[n] = (lower + n - 2) & (GROUP - 1);
        }
    }
};

/// The mean over a cloud's cells of the weighted differences of the potential along x, y, z, on one level; whether all first
/// cells are there. Along an axis on which a second cell is missing, differences of first cells alone; second cells without a
/// weight are not read.
template <typename T>
__device__ bool gradient(const Around<2> &around, const Potential<T> &potential, bool is_coarser,
                         const T (&with_second)[2], T (&g)[3]) {
    const Reach x(around.lower[0]), y(around.lower[1]), z(around.lower[2]);
    uint32_t slots[8];
#pragma unroll
    for (int corner = 0; corner < 8; corner++) {
        slots[corner] = around.beside(x.ends[corner & 1], y.ends[corner >> 1 & 1], z.ends[corner >> 2]);
    }
    // all values are loaded before any is used; indices are known to the compiler, so that they stay in registers
    bool all = true, has_second[3] = {true, true, true};
    T values[6][6][6];
#pragma unroll
    for (int k = 0; k < 6; k++) {
#pragma unroll
        for (int j = 0; j < 6; j++) {
            const bool cloud_j = j == 2 || j == 3, cloud_k = k == 2 || k == 3;
            if (!cloud_j && !cloud_k) continue;
            uint32_t row[2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const uint32_t near = y.further[j] ? slots[2 + i] : slots[i];
                const uint32_t far = y.further[j] ? slots[6 + i] : slots[4 + i];
                row[i] = z.further[k] ? far : near;
            }
            const int first = cell(0, y.place[j], z.place[k]);
#pragma unroll
            for (int i = 0; i < 6; i++) {
                const bool cloud_i = i == 2 || i == 3;
                if (!cloud_i && !(cloud_j && cloud_k)) continue;
                const uint32_t slot = x.further[i] ? row[1] : row[0];
                const bool is_there = slot != NONE;
                if (i == 0 || i == 5) has_second[0] &= is_there;
                else if (j == 0 || j == 5) has_second[1] &= is_there;
                else if (k == 0 || k == 5) has_second[2] &= is_there;
                else all &= is_there;
                const bool is_second = i == 0 || i == 5 || j == 0 || j == 5 || k == 0 || k == 5;
                const bool is_read = is_there && !(is_second && with_second[1] == T(0));
                values[k][j][i] = is_read ? potential.at(slot, first + x.place[i], is_coarser) : T(0);
            }
        }
    }
    T first_weights[3], second_weights[3];
#pragma unroll
    for (int axis = 0; axis < 3; axis++) {
        first_weights[axis] = has_second[axis] ? with_second[0] : T(1);
        second_weights[axis] = has_second[axis] ? with_second[1] : T(0);
    }
    const T unit = T(1.0 / (1 << WEIGHT_BITS));
    g[0] = g[1] = g[2] = T(0);
#pragma unroll
    for (int corner = 0; corner < 8; corner++) {
        const int i = 2 + (corner & 1), j = 2 + (corner >> 1 & 1), k = 2 + (corner >> 2);
        const T w = T(around.weights[0][i - 2]) * unit * (T(around.weights[1][j - 2]) * unit) *
                    (T(around.weights[2][k - 2]) * unit);
        g[0] += w * (first_weights[0] * (values[k][j][i + 1] - values[k][j][i - 1]) -
                     second_weights[0] * (values[k][j][i + 2] - values[k][j][i - 2]));
        g[1] += w * (first_weights[1] * (values[k][j + 1][i] - values[k][j - 1][i]) -
                     second_weights[1] * (values[k][j + 2][i] - values[k][j - 2][i]));
        g[2] += w * (first_weights[2] * (values[k + 1][j][i] - values[k - 1][j][i]) -
                     second_weights[2] * (values[k + 2][j][i] - values[k - 2][j][i]));
    }
    return all;
}

template <typename T>
__device__ void kick_particles(const GroupLocator &locator, int level, const Columns &particles,
                               const Potential<T> &potential, double factor) {
    const size_t n = particle();
    if (n >= particles.count) return;
    const uint32_t position[3] = {particles.columns[0][n], particles.columns[1][n], particles.columns[2][n]};
    T g[3];
    for (int coarser = level; coarser >= 0; coarser--, factor *= 0.5) {
        const Around<2> around(locator, coarser, position);
        const double b = coarser > 0 && !around.is_refined(position) ? SECOND_CELLS : 0.0;
        const T weights[2] = {T(1.0 + b), T(0.5 * b)};
        if (gradient(around, potential, coarser + 1 == level, weights, g)) break;
    }
#pragma unroll
    for (int axis = 0; axis < 3; axis++) {
        const T change = T(factor) * g[axis];
        particles.columns[3 + axis][n] = bits_of(float(double(particles.velocity(axis, n)) + double(change)));
    }
}

/// The number of every particle's group less `lowest`, how many come before it in its group, and how many the groups have.
extern "C" __global__ void count_particles_f32(GroupLocator locator, int finest, Columns particles, uint32_t lowest,
                                               uint32_t last_of_from, uint32_t *numbers, uint32_t *ranks,
                                               unsigned *counts) {
    const size_t n = particle();
    uint32_t number = NONE;
    if (n < particles.count) {
        const uint32_t position[3] = {particles.columns[0][n], particles.columns[1][n], particles.columns[2][n]};
        int level = finest;
        const uint32_t home = locator.numbers[locator.home(position, level)];
        number = (home < lowest ? last_of_from : home) - lowest;
        numbers[n] = number;
    }
    const uint32_t before = counted(counts, number);
    if (number != NONE) ranks[n] = before;
}

/// Turns counts into the place of each group's first particle; `firsts` are those of levels.
extern "C" __global__ void __launch_bounds__(1024)
    scan_counts_f32(unsigned *counts, uint32_t groups, uint32_t first, const uint32_t *first_group, int from, int levels,
                    uint32_t *firsts) {
    __shared__ uint32_t sums[1024];
    const uint32_t each = (groups + blockDim.x - 1) / blockDim.x;
    const uint32_t begin = min(threadIdx.x * each, groups), end = min(begin + each, groups);
    uint32_t sum = 0;
    for (uint32_t g = begin; g < end; g++) sum += counts[g];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned distance = 1; distance < blockDim.x; distance *= 2) {
        const uint32_t before = threadIdx.x >= distance ? sums[threadIdx.x - distance] : 0;
        __syncthreads();
        sums[threadIdx.x] += before;
        __syncthreads();
    }
    uint32_t next = first + sums[threadIdx.x] - sum;
    for (uint32_t g = begin; g < end; g++) {
        for (int level = 0; level < levels; level++) {
            if (first_group[from + level] - first_group[from] == g) firsts[level] = next;
        }
        const uint32_t count = counts[g];
        counts[g] = next;
        next += count;
    }
}

extern "C" __global__ void find_targets_f32(uint64_t count, const uint32_t *numbers, const uint32_t *firsts,
                                            uint32_t *targets) {
    const size_t n = particle();
    if (n < count) targets[n] += firsts[numbers[n]];
}

extern "C" __global__ void scatter_column_f32(uint64_t count, const uint32_t *values, const uint32_t *targets,
                                              uint32_t *sorted) {
    const size_t n = particle();
    if (n < count) sorted[targets[n]] = values[n];
}

extern "C" __global__ void copy_column_f32(uint64_t count, const uint32_t *from, uint32_t *to) {
    const size_t n = particle();
    if (n < count) to[n] = from[n];
}

struct BlockSums {
    int64_t momentum[3];
    uint64_t square;
    float fastest;
    uint32_t invalid;
};

/// As many blocks for class 0, then for class 1, and so on.
extern "C" __global__ void sum_particles_f32(Columns particles, uint32_t blocks_of_class, BlockSums *sums) {
    const int mass_class = blockIdx.x / blocks_of_class;
    const uint32_t block = blockIdx.x % blocks_of_class;
    __shared__ int64_t room[32];
    __shared__ uint32_t room_of_bits[32];
    int64_t momentum[3] = {0, 0, 0}, square = 0, invalid = 0;
    uint32_t fastest = 0;
    for (int c = threadIdx.x; c < BLOCK; c += blockDim.x) {
        const size_t n = size_t(block) * BLOCK + c;
        if (n >= particles.count) break;
        if (particles.mass_class(n) != mass_class) continue;
        const float v[3] = {particles.velocity(0, n), particles.velocity(1, n), particles.velocity(2, n)};
        const float most = 2000.0f;
        if (!(absolute(v[0]) < most && absolute(v[1]) < most && absolute(v[2]) < most)) {
            invalid++;
            continue;
        }
        double sum = 0.0;
        for (int axis = 0; axis < 3; axis++) {
            const uint32_t speed = bits_of(absolute(v[axis]));
            fastest = max(fastest, speed);
            momentum[axis] += (long long)rint(double(v[axis]) * 16777216.0);
            sum += double(v[axis]) * double(v[axis]);
        }
        square += (long long)rint(sum * 268435456.0);
    }
    for (int axis = 0; axis < 3; axis++) momentum[axis] = sum_of_block(momentum[axis], room);
    square = sum_of_block(square, room);
    invalid = sum_of_block(invalid, room);
    // bits of positive numbers are in their order
    fastest = ~least_of_block(~fastest, room_of_bits);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = {{momentum[0], momentum[1], momentum[2]}, uint64_t(square), of_bits(fastest), uint32_t(invalid)};
    }
}

struct Edges {
    uint32_t widths[3];
};

extern "C" __global__ void count_near_edges_f32(Columns particles, Edges edges, uint32_t *counts) {
    __shared__ uint32_t room[32];
    uint32_t count = 0;
    for (int c = threadIdx.x; c < BLOCK; c += blockDim.x) {
        const size_t n = size_t(blockIdx.x) * BLOCK + c;
        if (n >= particles.count) break;
        bool is_near = false;
        for (int axis = 0; axis < 3; axis++) {
            is_near |= particles.columns[axis][n] + edges.widths[axis] < 2 * edges.widths[axis];
        }
        count += is_near;
    }
    count = sum_of_block(count, room);
    if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

extern "C" __global__ void hash_particles_f32(Columns particles, uint64_t *hashes) {
    __shared__ uint64_t room[32];
    uint64_t sum = 0;
    for (int c = threadIdx.x; c < BLOCK; c += blockDim.x) {
        const size_t n = size_t(blockIdx.x) * BLOCK + c;
        if (n >= particles.count) break;
        uint64_t hash = 0;
        for (int column = 0; column < COLUMNS; column++) {
            hash = (hash ^ particles.columns[column][n]) * 0x9E3779B97F4A7C15ull;
            hash ^= hash >> 29;
        }
        sum += hash;
    }
    sum = sum_of_block(sum, room);
    if (threadIdx.x == 0) hashes[blockIdx.x] = sum;
}

#define BOTH(T, suffix)                                                                                                \
    extern "C" __global__ void matter_density_##suffix(const uint32_t *slots, const uint64_t *mass, double unit,       \
                                                       const T *fluid, int fields, T *density) {                       \
        matter_density<T>(slots, mass, unit, fluid, fields, density);                                                  \
    }                                                                                                                  \
    extern "C" __global__ void kick_particles_##suffix(GroupLocator locator, int level, Columns particles,             \
                                                       Potential<T> potential, double factor) {                        \
        kick_particles<T>(locator, level, particles, potential, factor);                                               \
    }
BOTH(float, f32)
BOTH(double, f64)
