// The layout of every array: the twin of layout.rs, with the same names.
#pragma once
#include <cstdint>

constexpr int PATCH = 8;
constexpr int GROUP = 16;
constexpr int FACE_CELLS = GROUP * GROUP;
constexpr int GROUP_CELLS = GROUP * GROUP * GROUP;
constexpr int FACES = 6;
constexpr int OCTANTS = 8;
constexpr int FIELDS = 6;
constexpr int DENSITY = 0, MOMENTUM = 1, ENERGY = 4, ENTROPY = 5;
constexpr int GROUP_VALUES = FIELDS * GROUP_CELLS;
constexpr int HYDRO_GHOSTS = 3;
constexpr int HYDRO_BLOCK = GROUP + 2 * HYDRO_GHOSTS;
constexpr int DIRECTIONS = 27;
constexpr int CENTRE = 13;
constexpr int FLUX_PLANES_PER_AXIS = 3;
constexpr int FLUX_PLANES = 3 * FLUX_PLANES_PER_AXIS;
constexpr int FLUX_PLANE_VALUES = FIELDS * FACE_CELLS;
constexpr uint32_t NONE = 0xffffffffu;

/// The entry of direction (dx, dy, dz), each -1, 0 or 1, in a row of neighbours.
__host__ __device__ constexpr int direction(int dx, int dy, int dz) { return 13 + dx + 3 * dy + 9 * dz; }

/// Offset of cell (i, j, k) in a group's field.
__host__ __device__ constexpr int cell(int i, int j, int k) { return (k * GROUP + j) * GROUP + i; }
