// Exchanges of particles: the twin of exchange/cpu.rs.
#include "level/group_locator.cuh"
#include "operations/particles/columns.cuh"

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
    uint32_t number = NONE;
    if (n < particles.count) {
        const uint32_t position[3] = {particles.columns[0][n], particles.columns[1][n], particles.columns[2][n]};
        const uint32_t home = locator.numbers[locator.home(position, finest)];
        if (home >= lowest) number = home - lowest;
    }
    counted(counts, number);
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
