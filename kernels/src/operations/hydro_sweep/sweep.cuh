// One hydro sweep of a level: the twin of hydro_sweep/cpu.rs. The kernels are made of it in the .cu files beside.
//
// A block sweeps a tile of a group: the whole group, or a part of it where groups are few or a whole one does not fit into
// shared memory. The first pass reads its pencils, ghost cells included, straight from the pools; what it gives stays in
// shared memory for the other two, each in place and by one thread a pencil. Then every cell of the tile is synchronised
// and written. A cell's values do not depend on the tile it is in.
#pragma once
#include "level/report.cuh"
#include "level/ghosts/ghosts.cuh"
#include "operations/hydro_sweep/pencil.cuh"
#include "level/troubled_cells/troubled_cells.cuh"

/// The cells whose faces are swept at first order, pass by pass.
struct Redo {
    MarkBits passes[3];
};

/// What a sweep gets, as hydro_sweep/cuda.rs passes it.
template <typename T> struct Sweep {
    Level level;
    const uint32_t *flux_slots; // [groups, 9]
    const T *fluid;
    EarlierFluid<T> earlier;
    T *out;
    T *fluxes;
    const uint16_t *known; // marks, [slots, 16, 16]
    uint16_t *found;       // the same
    const uint32_t *list;  // the groups to sweep; null: all
    GroupReport *reports;  // [groups swept, tiles]
    uint32_t *marked;      // their sum of newly marked cells
    T *shells;             // room of a Shell for each block
    Redo *redos;           // for a redo, the same
    uint32_t groups;       // to sweep
    T dt_over_dx;
    int axes[3];
    Eos<T> eos;
};

/// Three numbers for the three axes, in registers: an array indexed at run time would be in memory.
template <typename V> struct Axes {
    V x, y, z;
    __device__ __forceinline__ V operator[](int axis) const { return axis == 0 ? x : axis == 1 ? y : z; }
};

/// The other two axes, in the order x, y, z.
__device__ __forceinline__ int first_other(int axis) { return axis == 0 ? 1 : 0; }
__device__ __forceinline__ int second_other(int axis) { return axis == 2 ? 1 : 2; }

/// Cells and ghost cells of a tile of 16 x Y x Z cells once the first pass, along `first`, has been made.
template <int Y, int Z> struct Tile {
    static constexpr int TILES_Y = GROUP / Y, TILES = TILES_Y * (GROUP / Z);
    Axes<int> stride; // distance in memory of cells, of rows, of planes
    int field;        // of fields

    __device__ __forceinline__ Tile(int first) {
        const int x = GROUP + (first == 0 ? 0 : 2 * HYDRO_GHOSTS);
        const int y = Y + (first == 1 ? 0 : 2 * HYDRO_GHOSTS), z = Z + (first == 2 ? 0 : 2 * HYDRO_GHOSTS);
        const int row = x | 1; // odd: columns of cells use all banks
        stride = {1, row, row * y};
        field = row * y * z;
    }
};

/// Cells around a tile as they are made, ghosts on all sides: [6, Z + 6, Y + 6, 24]. A row begins with a cell that nobody
/// reads and ends with one, so that the two fine cells of a coarse one are written at once.
template <int Y, int Z> struct Shell {
    static constexpr int BEFORE = 1, ROW = GROUP + 2 * HYDRO_GHOSTS + 2 * BEFORE, PLANE = ROW * (Y + 2 * HYDRO_GHOSTS);
    static constexpr int CELLS = PLANE * (Z + 2 * HYDRO_GHOSTS);
};

/// Two cells beside each other.
template <typename T> struct alignas(2 * sizeof(T)) Pair {
    T low, high;
};

/// Whether a region around a group, in direction (dx, dy, dz), is beyond a wall.
__device__ __forceinline__ bool is_beyond(uint32_t outside, int dx, int dy, int dz) {
    return outside &
           ((dx < 0 ? 1 : dx > 0 ? 2 : 0) | (dy < 0 ? 4 : dy > 0 ? 8 : 0) | (dz < 0 ? 16 : dz > 0 ? 32 : 0));
}

/// -1, 0 or 1: the group that holds a coordinate.
__device__ __forceinline__ int step_of(int n) { return (n >= GROUP) - (n < 0); }

/// A group and what surrounds it, looked up once for all threads of a block.
struct Surrounded {
    uint32_t slots[DIRECTIONS]; // of the groups around and of itself
    // bits by direction: the region is made, not read; it is made from the coarser level
    uint32_t made, interpolated;

    __device__ __forceinline__ bool is_made(int dx, int dy, int dz) const { return made >> direction(dx, dy, dz) & 1; }
    __device__ __forceinline__ bool is_interpolated(int dx, int dy, int dz) const {
        return interpolated >> direction(dx, dy, dz) & 1;
    }
};

/// Coarse cells around a tile that the cells that are made there depend on: [6, Z, Y, 14]. The first is three cells
/// before the tile along each axis.
template <int Y, int Z> struct CoarseBlock {
    static constexpr int MARGIN = 3;
    static constexpr int X_CELLS = GROUP / 2 + 2 * MARGIN, Y_CELLS = Y / 2 + 2 * MARGIN, Z_CELLS = Z / 2 + 2 * MARGIN;
    static constexpr int CELLS = X_CELLS * Y_CELLS * Z_CELLS;
};

/// Makes the cells around a tile that no group of the level holds, by all threads: in `shell`, whose other cells stay as
/// they are. `coarse` is room for a CoarseBlock in shared memory.
template <typename T, int Y, int Z>
__device__ void make_cells(const Sweep<T> &sweep, const Surrounded &around, uint32_t g, int origin_y, int origin_z, T *coarse,
                           T *shell) {
    using Cells = Shell<Y, Z>;
    using Block = CoarseBlock<Y, Z>;
    const Ghosts<T> ghosts(sweep.level, g, sweep.fluid, sweep.earlier);
    // the group of the fine cells of a coarse one, which counts from the parent patch's first cell
    const auto step = [](int n) { return (n >= PATCH) - (n < 0); };

    // every coarse cell is read, and interpolated in time, once
    for (int e = threadIdx.x; e < Block::CELLS; e += blockDim.x) {
        const int x = e % Block::X_CELLS - Block::MARGIN, y = e / Block::X_CELLS % Block::Y_CELLS - Block::MARGIN + origin_y / 2;
        const int z = e / (Block::X_CELLS * Block::Y_CELLS) - Block::MARGIN + origin_z / 2;
        const auto needs = [&](int dx, int dy, int dz) {
            return around.is_interpolated(step(x + dx), step(y + dy), step(z + dz));
        };
        if (!(needs(0, 0, 0) || needs(-1, 0, 0) || needs(1, 0, 0) || needs(0, -1, 0) || needs(0, 1, 0) || needs(0, 0, -1) ||
              needs(0, 0, 1)))
            continue;
        T u[FIELDS];
        const auto in_parent = [&](int axis, int n) { return int(ghosts.octant >> axis & 1) * PATCH + n; };
        if (!ghosts.load_coarse(in_parent(0, x), in_parent(1, y), in_parent(2, z), u)) continue;
#pragma unroll
        for (int f = 0; f < FIELDS; f++) {
            if (f != ENERGY) coarse[f * Block::CELLS + e] = u[f];
        }
    }
    __syncthreads();

    // the pairs of fine cells that reach the shell, along each axis: a coarse cell's eight have their slopes in common
    constexpr int PAIRS_X = Block::X_CELLS - 2, PAIRS_Y = Block::Y_CELLS - 2, PAIRS_Z = Block::Z_CELLS - 2;
    for (int e = threadIdx.x; e < PAIRS_X * PAIRS_Y * PAIRS_Z; e += blockDim.x) {
        const int x = e % PAIRS_X, y = e / PAIRS_X % PAIRS_Y, z = e / (PAIRS_X * PAIRS_Y);
        // the first of the eight, in the group and in the shell
        const int i = 2 * x - HYDRO_GHOSTS - 1, j = 2 * y - HYDRO_GHOSTS - 1 + origin_y;
        const int k = 2 * z - HYDRO_GHOSTS - 1 + origin_z;
        const int dx = step_of(i), dy = step_of(j), dz = step_of(k);
        if (!around.is_made(dx, dy, dz)) continue;
        // of the outermost pairs along y and z one cell does not reach it
        const bool reaches[2][2] = {{y > 0, y < PAIRS_Y - 1}, {z > 0, z < PAIRS_Z - 1}};
        const auto inside = [&](int pair) { return reaches[0][pair & 1] && reaches[1][pair >> 1]; };
        T *first = shell + (2 * z - 1) * Cells::PLANE + (2 * y - 1) * Cells::ROW + 2 * x - 1 + Cells::BEFORE;
        const auto place = [](int pair) { return (pair >> 1) * Cells::PLANE + (pair & 1) * Cells::ROW; };
        if (!around.is_interpolated(dx, dy, dz)) {
#pragma unroll 1
            for (int n = 0; n < 8; n++) {
                if (!inside(n >> 1)) continue;
                T u[FIELDS];
                ghosts.load(ghosts.place(0, i + (n & 1)), ghosts.place(1, j + (n >> 1 & 1)), ghosts.place(2, k + (n >> 2)),
                            sweep.eos, u);
                for (int f = 0; f < FIELDS; f++) first[f * Cells::CELLS + place(n >> 1) + (n & 1)] = u[f];
            }
            continue;
        }
        constexpr int ROW = Block::X_CELLS, PLANE = Block::X_CELLS * Block::Y_CELLS;
        const T *centre = coarse + (z + 1) * PLANE + (y + 1) * ROW + x + 1;
#pragma unroll 2
        for (int f = 0; f < FIELDS; f++) {
            if (f == ENERGY) continue;
            const T *from = centre + f * Block::CELLS;
            typename Ghosts<T>::Slopes slopes;
            slopes.centre = *from;
            slopes.limit(0, from[-1], from[1]);
            slopes.limit(1, from[-ROW], from[ROW]);
            slopes.limit(2, from[-PLANE], from[PLANE]);
            T cells[8];
            slopes.all(cells);
#pragma unroll
            for (int pair = 0; pair < 4; pair++) {
                Pair<T> *to = reinterpret_cast<Pair<T> *>(first + f * Cells::CELLS + place(pair));
                if (inside(pair)) *to = {cells[2 * pair], cells[2 * pair + 1]};
            }
        }
        // what this thread has just written
#pragma unroll 1
        for (int n = 0; n < 8; n++) {
            if (!inside(n >> 1)) continue;
            T *cell = first + place(n >> 1) + (n & 1);
            T u[FIELDS];
#pragma unroll
            for (int f = 0; f < FIELDS; f++) u[f] = f == ENERGY ? T(0.0) : cell[f * Cells::CELLS];
            cell[ENERGY * Cells::CELLS] = energy_by_entropy(u, sweep.eos);
        }
    }
}

/// Cells in memory: of a group of the level, or those that were made.
template <typename T> struct Region {
    const T *start; // of cell (0, 0, 0) of the group that is swept, if the region reached so far
    int row, plane; // distances of rows and planes; of cells it is 1
    int field;      // distance of fields

    /// The region around the group in direction (dx, dy, dz).
    template <int Y, int Z>
    __device__ __forceinline__ Region(const T *fluid, const Surrounded &around, int dx, int dy, int dz, int origin_y,
                                      int origin_z, const T *shell, Shell<Y, Z>) {
        if (around.is_made(dx, dy, dz)) {
            using Cells = Shell<Y, Z>;
            row = Cells::ROW;
            plane = Cells::PLANE;
            field = Cells::CELLS;
            start = shell + (HYDRO_GHOSTS - origin_z) * plane + (HYDRO_GHOSTS - origin_y) * row + HYDRO_GHOSTS + Cells::BEFORE;
        } else {
            row = GROUP;
            plane = FACE_CELLS;
            field = GROUP_CELLS;
            const uint32_t slot = around.slots[direction(dx, dy, dz)];
            start = fluid + size_t(slot) * GROUP_VALUES - dz * GROUP * plane - dy * GROUP * row - dx * GROUP;
        }
    }

    /// The first field of cell (i, j, k), counted from the group's first cell.
    __device__ __forceinline__ const T *at(int i, int j, int k) const { return start + k * plane + j * row + i; }
};

/// Six values of a cell in an array of fields, the momentum along a sweep first.
template <typename T> struct Permuted {
    int field, along, across, third; // distances in memory: of fields, and to the momenta

    __device__ __forceinline__ Permuted(int field, int axis)
        : field(field), along((MOMENTUM + axis) * field), across((MOMENTUM + (axis + 1) % 3) * field),
          third((MOMENTUM + (axis + 2) % 3) * field) {}
    __device__ __forceinline__ void read(const T *from, T (&u)[FIELDS]) const {
        u[DENSITY] = from[0];
        u[MOMENTUM] = from[along];
        u[MOMENTUM + 1] = from[across];
        u[MOMENTUM + 2] = from[third];
        u[ENERGY] = from[ENERGY * field];
        u[ENTROPY] = from[ENTROPY * field];
    }
    __device__ __forceinline__ void write(T *to, const T (&u)[FIELDS], T factor = T(1.0)) const {
        to[0] = factor * u[DENSITY];
        to[along] = factor * u[MOMENTUM];
        to[across] = factor * u[MOMENTUM + 1];
        to[third] = factor * u[MOMENTUM + 2];
        to[ENERGY * field] = factor * u[ENERGY];
        to[ENTROPY * field] = factor * u[ENTROPY];
    }
};

/// The low faces of a pencil's cells that take the first-order flux, bit n for cell n of the pencil; the pencil begins at
/// cell `first` of the block of 22 cells and stands at (a, b) of that block on the other axes.
__device__ inline uint32_t first_order_faces(const MarkBits &bits, int axis, int first, int a, int b) {
    const auto row = [&](int j, int k) { return bits[(k + 1) * MARK_WIDTH + j + 1] >> 1; };
    uint32_t faces = 0;
    if (axis == 0) {
        const uint32_t cells = row(a, b);
        faces = (cells | cells << 1) >> first;
    } else {
        for (int n = HYDRO_GHOSTS; n <= HYDRO_GHOSTS + GROUP; n++) {
            const uint32_t cells = axis == 1 ? row(n - 1, b) | row(n, b) : row(b, n - 1) | row(b, n);
            if (n >= first) faces |= (cells >> a & 1) << (n - first);
        }
    }
    return faces;
}

/// The axis of a pass: the three digits of AXES, or what the caller says where that is negative.
template <int AXES, typename T> __device__ __forceinline__ int axis_of(const Sweep<T> &sweep, int pass) {
    if constexpr (AXES < 0) return sweep.axes[pass];
    return pass == 0 ? AXES / 100 : pass == 1 ? AXES / 10 % 10 : AXES % 10;
}

/// What the threads of a block share besides the cells of a tile.
template <int Y, int Z> struct SharedState {
    Surrounded around;
    uint32_t marked, reach, redone, first_redone, redone_faces; // as in GroupReport
    uint16_t rows[Y * Z];                                       // newly marked cells
};

/// The tile that a block sweeps, and where its cells are in shared memory.
template <typename T, int Y, int Z, int AXES> struct SweptTile {
    using Layout = Tile<Y, Z>;
    uint32_t g, slot;
    Axes<int> origin; // the tile's first cell in the group
    Axes<int> size;
    int first, second; // axes of the first two passes
    Layout layout;
    T *block; // [7, z, y, x]: six fields and the shock indicator
    T *shell;

    __device__ __forceinline__ SweptTile(const Sweep<T> &sweep, uint32_t unit, T *block, T *shell)
        : first(axis_of<AXES>(sweep, 0)), second(axis_of<AXES>(sweep, 1)), layout(axis_of<AXES>(sweep, 0)), block(block),
          shell(shell) {
        const uint32_t place = unit / Layout::TILES, part = unit % Layout::TILES;
        g = sweep.list ? sweep.list[place] : place;
        slot = sweep.level.slots[g];
        origin = {0, int(part % Layout::TILES_Y) * Y, int(part / Layout::TILES_Y) * Z};
        size = {GROUP, Y, Z};
    }

    __device__ __forceinline__ Region<T> region(const Sweep<T> &sweep, const Surrounded &around, int dx, int dy, int dz) const {
        return Region<T>(sweep.fluid, around, dx, dy, dz, origin.y, origin.z, shell, Shell<Y, Z>());
    }
};

/// Looks up the 27 regions around a group, one for each thread of the first warp.
__device__ __forceinline__ void look_up_regions(const Level &level, uint32_t g, Surrounded &around) {
    if (threadIdx.x >= 32) return;
    const int t = min(int(threadIdx.x), DIRECTIONS - 1);
    const uint32_t slot = level.neighbours[size_t(g) * DIRECTIONS + t];
    const bool beyond = is_beyond(level.outside[g], t % 3 - 1, t / 3 % 3 - 1, t / 9 - 1);
    around.slots[t] = slot;
    constexpr uint32_t ALL = (1u << DIRECTIONS) - 1;
    const uint32_t made = __ballot_sync(~0u, beyond || slot == NONE) & ALL;
    const uint32_t interpolated = __ballot_sync(~0u, !beyond && slot == NONE) & ALL;
    if (threadIdx.x == 0) around.made = made, around.interpolated = interpolated;
}

/// The cells whose faces each pass sweeps at first order.
template <typename T> __device__ __forceinline__ void gather_redo(const Sweep<T> &sweep, uint32_t g, Redo &redo) {
    gather_marks(sweep.level, g, sweep.known, redo.passes[2]);
    __syncthreads();
    spread_marks(redo.passes[2], sweep.axes[2], redo.passes[1]);
    __syncthreads();
    spread_marks(redo.passes[1], sweep.axes[1], redo.passes[0]);
    __syncthreads();
}

/// Copies the cells that the first pass reads and overwrites into shared memory.
template <typename T, int Y, int Z, int AXES>
__device__ __forceinline__ void gather_cells(const Sweep<T> &sweep, const SweptTile<T, Y, Z, AXES> &tile,
                                             const Surrounded &around) {
    const int low_x = tile.first == 0 ? 0 : -HYDRO_GHOSTS, low_y = tile.first == 1 ? 0 : -HYDRO_GHOSTS;
    const int low_z = tile.first == 2 ? 0 : -HYDRO_GHOSTS;
    const int width_x = GROUP - 2 * low_x, width_y = Y - 2 * low_y, width_z = Z - 2 * low_z;
    for (int e = threadIdx.x; e < width_x * width_y * width_z; e += blockDim.x) {
        const int x = e % width_x, y = e / width_x % width_y, z = e / (width_x * width_y);
        const int i = x + low_x, j = y + low_y + tile.origin.y, k = z + low_z + tile.origin.z;
        const Region<T> region = tile.region(sweep, around, step_of(i), step_of(j), step_of(k));
        const T *from = region.at(i, j, k);
        T *to = tile.block + z * tile.layout.stride.z + y * tile.layout.stride.y + x;
#pragma unroll
        for (int f = 0; f < FIELDS; f++) to[f * tile.layout.field] = from[f * region.field];
        to[FIELDS * tile.layout.field] = ShockIndicator<T>::UNSEEN;
    }
}

/// One pencil of a pass along `axis`, at (a, b) on the other axes, counted from the tile's first cell.
/// mass_flux: if SCALARS, where twice the mass flux through the pencil's first face goes, and `faces_apart` further that of
/// the next.
template <Scheme SCHEME, typename A, typename T, int Y, int Z, bool REDO, int AXES, bool SCALARS>
__device__ __forceinline__ void sweep_one_pencil(const Sweep<T> &sweep, const SweptTile<T, Y, Z, AXES> &tile,
                                                 SharedState<Y, Z> &shared, const Redo &redo, int pass, int axis, int a,
                                                 int b, T *mass_flux, int faces_apart) {
    const int outer = first_other(axis), other = second_other(axis);
    const Axes<int> &origin = tile.origin, &size = tile.size;
    // the block keeps ghost cells along all axes but the first
    const auto kept = [&](int axis) { return axis == tile.first ? 0 : HYDRO_GHOSTS; };
    const int cells = size[axis] + 2 * HYDRO_GHOSTS, stride = tile.layout.stride[axis];
    const Permuted<T> in_block(tile.layout.field, axis), in_plane(FACE_CELLS, axis);
    const int group_a = a + origin[outer], group_b = b + origin[other];
    // the pencil's cell 0, ghosts included
    T *line = tile.block + (a + kept(outer)) * tile.layout.stride[outer] + (b + kept(other)) * tile.layout.stride[other] +
              (kept(axis) - HYDRO_GHOSTS) * stride;
    const bool own = a >= 0 && a < size[outer] && b >= 0 && b < size[other];
    const auto face = [&](int n, const T(&flux)[FIELDS]) {
        if constexpr (SCALARS) mass_flux[(n - HYDRO_GHOSTS) * faces_apart] = flux[DENSITY];
        const int at = origin[axis] + n - HYDRO_GHOSTS;
        // the tile above writes the flux between the two
        if (at % PATCH != 0 || !own || (n == cells - HYDRO_GHOSTS && at != GROUP)) return;
        const int place = axis * FLUX_PLANES_PER_AXIS + at / PATCH;
        const uint32_t plane = sweep.flux_slots[size_t(tile.g) * FLUX_PLANES + place];
        if (plane == NONE) return;
        in_plane.write(sweep.fluxes + size_t(plane) * FLUX_PLANE_VALUES + group_b * GROUP + group_a, flux, T(0.5));
    };
    uint32_t faces = 0;
    if constexpr (REDO) {
        faces = first_order_faces(redo.passes[pass], axis, origin[axis], group_a + HYDRO_GHOSTS, group_b + HYDRO_GHOSTS);
        const uint32_t low_faces = ((1u << size[axis]) - 1) << HYDRO_GHOSTS;
        if (own && (faces & low_faces)) atomicAdd(&shared.redone_faces, uint32_t(__popc(faces & low_faces)));
    }
    const auto again = [&](int n, T(&u)[FIELDS]) { in_block.read(line + n * stride, u); };
    // a cell's shock indicator is stored behind its fields
    const auto survey = [&](int n, T indicator) {
        if (n >= HYDRO_GHOSTS && n < cells - HYDRO_GHOSTS) line[n * stride + FIELDS * tile.layout.field] = indicator;
    };
    const auto store = [&](int n, const T(&u)[FIELDS]) { in_block.write(line + n * stride, u); };
    if (pass == 0) {
        // its ends are ghost cells that the block does not keep
        const auto end = [&](int step) {
            const int step_a = step_of(group_a), step_b = step_of(group_b);
            return tile.region(sweep, shared.around, axis == 0 ? step : step_a,
                               axis == 0 ? step_a : axis == 1 ? step : step_b, axis == 2 ? step : step_b);
        };
        const int start = origin[axis] - HYDRO_GHOSTS;
        const Region<T> below = end(step_of(start)), above = end(step_of(origin[axis] + size[axis]));
        const auto load = [&](int n, T(&u)[FIELDS]) -> T {
            if (n >= HYDRO_GHOSTS && n < cells - HYDRO_GHOSTS) {
                again(n, u);
                return ShockIndicator<T>::UNSEEN;
            }
            const Region<T> &region = n < HYDRO_GHOSTS ? below : above;
            const int at = start + n;
            const T *from = region.at(axis == 0 ? at : group_a, axis == 0 ? group_a : axis == 1 ? at : group_b,
                                      axis == 2 ? at : group_b);
            Permuted<T>(region.field, axis).read(from, u);
            return ShockIndicator<T>::UNSEEN;
        };
        sweep_pencil<SCHEME, A, REDO>(cells, sweep.dt_over_dx, sweep.eos, faces, load, again, face, store, survey);
    } else {
        const auto load = [&](int n, T(&u)[FIELDS]) -> T {
            again(n, u);
            return line[n * stride + FIELDS * tile.layout.field];
        };
        sweep_pencil<SCHEME, A, REDO>(cells, sweep.dt_over_dx, sweep.eos, faces, load, again, face, store, survey);
    }
}

/// One directional pass over a tile, one thread a pencil, in place.
/// mass_flux: if SCALARS, twice the mass fluxes of this pass, [face, pencil]
template <Scheme SCHEME, typename A, typename T, int Y, int Z, bool REDO, int AXES, bool SCALARS>
__device__ __forceinline__ void sweep_pass(const Sweep<T> &sweep, const SweptTile<T, Y, Z, AXES> &tile,
                                           SharedState<Y, Z> &shared, const Redo &redo, int pass, T *mass_flux) {
    const int axis = axis_of<AXES>(sweep, pass), outer = first_other(axis), other = second_other(axis);
    // ghost cells along the others are needed where these are still to be swept
    const auto swept = [&](int axis) { return (pass > 0 && axis == tile.first) || (pass > 1 && axis == tile.second); };
    const int low_a = swept(outer) ? 0 : -HYDRO_GHOSTS, low_b = swept(other) ? 0 : -HYDRO_GHOSTS;
    const int width_a = tile.size[outer] - 2 * low_a, width_b = tile.size[other] - 2 * low_b;
    for (int pencil = threadIdx.x; pencil < width_a * width_b; pencil += blockDim.x) {
        const int a = pencil % width_a + low_a, b = pencil / width_a + low_b;
        sweep_one_pencil<SCHEME, A, T, Y, Z, REDO, AXES, SCALARS>(sweep, tile, shared, redo, pass, axis, a, b, mass_flux + pencil,
                                                                  width_a * width_b);
    }
    __syncthreads();
}

/// Synchronises every cell of a tile and writes it: what is booked, and the rows of newly marked cells.
template <typename T, int Y, int Z, int AXES>
__device__ __forceinline__ void write_cells(const Sweep<T> &sweep, const SweptTile<T, Y, Z, AXES> &tile,
                                            SharedState<Y, Z> &shared, Booking &booking) {
    T *out = sweep.out + size_t(tile.slot) * GROUP_VALUES;
    const uint32_t leaves = sweep.level.leaves[tile.g];
    // a warp has two whole rows at a time
    for (int n = threadIdx.x; n < GROUP * Y * Z; n += blockDim.x) {
        const int i = n % GROUP, j = n / GROUP % Y, k = n / (GROUP * Y);
        const T *from = tile.block + (tile.first == 0 ? i : i + HYDRO_GHOSTS) +
                        (tile.first == 1 ? j : j + HYDRO_GHOSTS) * tile.layout.stride.y +
                        (tile.first == 2 ? k : k + HYDRO_GHOSTS) * tile.layout.stride.z;
        T u[FIELDS];
#pragma unroll
        for (int f = 0; f < FIELDS; f++) u[f] = from[f * tile.layout.field];
        const T density = u[DENSITY], energy = u[ENERGY];
        const int offset = cell(i, j + tile.origin.y, k + tile.origin.z);
        if (keeps_adiabat(u)) {
            const T *before = sweep.fluid + size_t(tile.slot) * GROUP_VALUES + offset;
            u[ENTROPY] = on_adiabat(before[ENTROPY * GROUP_CELLS], before[DENSITY * GROUP_CELLS], density);
        }
        const Synchronised done = synchronise(u, from[FIELDS * tile.layout.field], sweep.eos);
#pragma unroll
        for (int f = 0; f < FIELDS; f++) out[f * GROUP_CELLS + offset] = u[f];
        const int octant = i / PATCH + 2 * ((j + tile.origin.y) / PATCH) + 4 * ((k + tile.origin.z) / PATCH);
        bool mark = false;
        if (leaves >> octant & 1) mark = booking.add(density, energy, u, done, offset);
        const uint32_t ballot = __ballot_sync(~0u, mark);
        if (i == 0) shared.rows[n / GROUP] = uint16_t(ballot >> (threadIdx.x & 16));
    }
    __syncthreads();
}

/// Writes a tile's marks and counts those that are new.
template <bool REDO, typename T, int Y, int Z, int AXES>
__device__ __forceinline__ void write_marks(const Sweep<T> &sweep, const SweptTile<T, Y, Z, AXES> &tile,
                                            SharedState<Y, Z> &shared) {
    for (int n = threadIdx.x; n < Y * Z; n += blockDim.x) {
        const int j = n % Y + tile.origin.y, k = n / Y + tile.origin.z;
        const size_t at = size_t(tile.slot) * MARK_ROWS + k * GROUP + j;
        uint32_t fresh = shared.rows[n], all = fresh;
        if constexpr (REDO) {
            const uint32_t known = sweep.known[at];
            if (known) {
                atomicAdd(&shared.redone, uint32_t(__popc(known)));
                atomicMin(&shared.first_redone, uint32_t(cell(__ffs(known) - 1, j, k)));
            }
            fresh &= ~known;
            all |= known;
        }
        sweep.found[at] = uint16_t(all);
        if (fresh) {
            atomicAdd(&shared.marked, uint32_t(__popc(fresh)));
            atomicOr(&shared.reach, marks_reach(fresh, j, k));
        }
    }
}

/// Writes the report of a tile, by thread 0; `room` is shared memory that is no longer in use.
template <typename T, int Y, int Z>
__device__ __forceinline__ void write_report(const Sweep<T> &sweep, uint32_t unit, const SharedState<Y, Z> &shared,
                                             const Booking &booking, BlockRoom &room) {
    GroupReport report = {};
    sum_bookings(booking, room, report);
    if (threadIdx.x != 0) return;
    report.marked = shared.marked;
    if (shared.marked) atomicAdd(sweep.marked, shared.marked);
    report.marks_reach = shared.reach;
    report.redone = shared.redone;
    report.first_redone = shared.first_redone == NONE ? 0 : shared.first_redone;
    report.redone_faces = shared.redone_faces;
    sweep.reports[unit] = report;
}

/// What a sweep without scalars is given of them.
struct NoScalars {};

/// Room for twice the mass fluxes of a pass over a tile, ghost cells included.
template <int Y, int Z> struct MassFluxes {
    static constexpr int OF_PASS = (GROUP + 1) * (Y + 2 * HYDRO_GHOSTS) * (Z + 2 * HYDRO_GHOSTS);
    static_assert(Y == Z && Y <= GROUP, "the first pass along x has the most faces");
};

/// Sweeps tiles, one block a tile at a time.
///
/// scalars: if SCALARS, what is swept after the gas of each tile
template <Scheme SCHEME, typename A, typename T, int Y, int Z, bool REDO, int AXES, bool SCALARS = false,
          typename Scalars = NoScalars>
__device__ void hydro_sweep(const Sweep<T> &sweep, const Scalars &scalars = Scalars()) {
    static_assert(FIELDS * CoarseBlock<Y, Z>::CELLS <= (FIELDS + 1) * GROUP * (Y + 2 * HYDRO_GHOSTS) * Z,
                  "coarse cells take the room of the cells that are swept afterwards");
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ SharedState<Y, Z> shared;
    Redo &redo = sweep.redos[REDO ? blockIdx.x : 0];
    T *shell = sweep.shells + size_t(blockIdx.x) * FIELDS * Shell<Y, Z>::CELLS;
    T *mass_fluxes = nullptr;
    if constexpr (SCALARS) mass_fluxes = scalars.mass_fluxes + size_t(blockIdx.x) * 3 * MassFluxes<Y, Z>::OF_PASS;
    for (uint32_t unit = blockIdx.x; unit < sweep.groups * Tile<Y, Z>::TILES; unit += gridDim.x) {
        __syncthreads();
        const SweptTile<T, Y, Z, AXES> tile(sweep, unit, reinterpret_cast<T *>(memory), shell);
        if (threadIdx.x == 0) {
            shared.marked = shared.reach = shared.redone = shared.redone_faces = 0;
            shared.first_redone = NONE;
        }
        if constexpr (REDO) gather_redo(sweep, tile.g, redo);
        look_up_regions(sweep.level, tile.g, shared.around);
        __syncthreads();
        if (shared.around.made) {
            make_cells<T, Y, Z>(sweep, shared.around, tile.g, tile.origin.y, tile.origin.z, tile.block, shell);
            __syncthreads();
        }
        gather_cells(sweep, tile, shared.around);
        __syncthreads();
        // known axes make every distance in memory a constant
        constexpr int UNROLL = AXES < 0 ? 1 : 3;
#pragma unroll UNROLL
        for (int pass = 0; pass < 3; pass++)
            sweep_pass<SCHEME, A, T, Y, Z, REDO, AXES, SCALARS>(sweep, tile, shared, redo, pass,
                                                                mass_fluxes + (SCALARS ? pass * MassFluxes<Y, Z>::OF_PASS : 0));
        Booking booking;
        write_cells(sweep, tile, shared, booking);
        write_marks<REDO>(sweep, tile, shared);
        write_report(sweep, unit, shared, booking, *reinterpret_cast<BlockRoom *>(memory));
        if constexpr (SCALARS) {
            __syncthreads();
            scalars.template sweep<A>(sweep, tile, shared.around, mass_fluxes, reinterpret_cast<T *>(memory));
        }
    }
}

/// Declares the kernel `name` of a scheme in the precision T: tiles of 16 x Y x Z cells, so many threads a block and blocks
/// at once on a multiprocessor.
#define SWEEP(name, SCHEME, A, T, Y, Z, REDO, AXES, threads, blocks)                                                   \
    extern "C" __global__ void __launch_bounds__(threads, blocks) name(const __grid_constant__ Sweep<T> sweep) {       \
        hydro_sweep<Scheme::SCHEME, A, T, Y, Z, REDO, AXES>(sweep);                                                                    \
    }

/// The sweeps and redos of a scheme as the CPU computes them, to the last bit.
#define EXACT_SWEEPS(name, SCHEME)                                                                                     \
    SWEEP(hydro_sweep_##name##_exact_f32, SCHEME, Exact, float, 8, 8, false, -1, 256, 2)                               \
    SWEEP(hydro_sweep_##name##_exact_f64, SCHEME, Exact, double, 8, 8, false, -1, 256, 1)                              \
    SWEEP(hydro_redo_##name##_exact_f32, SCHEME, Exact, float, 8, 8, true, -1, 256, 1)                                 \
    SWEEP(hydro_redo_##name##_exact_f64, SCHEME, Exact, double, 8, 8, true, -1, 256, 1)

/// Its fast ones: along x, y, z and z, y, x, which steps take by default, and along the axes in any order.
#define FAST_SWEEPS(name, SCHEME)                                                                                      \
    SWEEP(hydro_sweep_##name##_group_xyz_f32, SCHEME, Fast, float, 16, 16, false, 12, 512, 1)                          \
    SWEEP(hydro_sweep_##name##_group_zyx_f32, SCHEME, Fast, float, 16, 16, false, 210, 512, 1)                         \
    SWEEP(hydro_sweep_##name##_quarter_xyz_f32, SCHEME, Fast, float, 8, 8, false, 12, 256, 2)                          \
    SWEEP(hydro_sweep_##name##_quarter_zyx_f32, SCHEME, Fast, float, 8, 8, false, 210, 256, 2)                         \
    SWEEP(hydro_sweep_##name##_quarter_xyz_f64, SCHEME, Fast, double, 8, 8, false, 12, 256, 1)                         \
    SWEEP(hydro_sweep_##name##_quarter_zyx_f64, SCHEME, Fast, double, 8, 8, false, 210, 256, 1)                        \
    SWEEP(hydro_sweep_##name##_quarter_f32, SCHEME, Fast, float, 8, 8, false, -1, 256, 2)                              \
    SWEEP(hydro_sweep_##name##_quarter_f64, SCHEME, Fast, double, 8, 8, false, -1, 256, 1)                             \
    SWEEP(hydro_redo_##name##_group_xyz_f32, SCHEME, Fast, float, 16, 16, true, 12, 512, 1)                            \
    SWEEP(hydro_redo_##name##_group_zyx_f32, SCHEME, Fast, float, 16, 16, true, 210, 512, 1)                           \
    SWEEP(hydro_redo_##name##_quarter_f32, SCHEME, Fast, float, 8, 8, true, -1, 256, 2)                                \
    SWEEP(hydro_redo_##name##_quarter_f64, SCHEME, Fast, double, 8, 8, true, -1, 256, 1)
