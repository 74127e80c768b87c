// What an operation that changes cells says of each group: the twin of report.rs, and sums over a block's threads.
#pragma once
#include "level/level.cuh"
#include "point/dual_energy.cuh"

struct GroupReport {
    double energy_added;
    double floor_energy;
    double floor_mass;
    uint32_t floored;
    uint32_t first_floored;
    uint32_t cold;
    uint32_t negative;
    uint32_t invalid;
    uint32_t first_invalid;
    uint32_t marked;
    uint32_t marks_reach;
    uint32_t redone;
    uint32_t first_redone;
    uint32_t redone_faces;
    uint32_t padding; // by name, so that nothing goes to the host that was never written
};

/// True for a cell in a leaf patch.
__device__ inline bool is_leaf(uint8_t leaves, int i, int j, int k) {
    return leaves >> (i / PATCH + 2 * (j / PATCH) + 4 * (k / PATCH)) & 1;
}

/// One thread's part of a report.
struct Booking {
    double energy_added = 0.0, floor_energy = 0.0, floor_mass = 0.0;
    uint32_t floored = 0, cold = 0, negative = 0, invalid = 0;
    uint32_t first_floored = NONE, first_invalid = NONE;

    /// Adds a leaf cell: its density and energy before, the cell after, what synchronise said, its offset in the group.
    /// Whether the cell should not have occurred.
    template <typename T>
    __device__ bool add(T density, T energy, const T (&after)[6], const Synchronised &done, uint32_t offset) {
        const bool bad = !is_valid(after);
        const double gained = double(after[ENERGY]) - double(energy);
        cold += done.cold;
        negative += done.negative;
        if (done.floored) {
            floored++;
            first_floored = min(first_floored, offset);
            floor_energy += gained;
            floor_mass += double(after[DENSITY]) - double(density);
        } else if (after[ENERGY] != energy) {
            // in a cold cell, and what shows a cell that is no number
            energy_added += gained;
        }
        if (bad) {
            invalid++;
            first_invalid = min(first_invalid, offset);
        }
        return done.floored || bad;
    }
};

/// The sum over the threads of a block, to all of them, in an order that depends on the block's size alone. `room` holds
/// a value for each warp. Every thread calls it.
template <typename V> __device__ V sum_of_block(V value, V *room) {
    for (int lane = 16; lane > 0; lane /= 2) value += __shfl_down_sync(~0u, value, lane);
    __syncthreads();
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = value;
    __syncthreads();
    V sum = V(0);
    for (int warp = 0; warp < (blockDim.x + 31) / 32; warp++) sum += room[warp];
    return sum;
}

/// The same for the least value.
__device__ inline uint32_t least_of_block(uint32_t value, uint32_t *room) {
    value = __reduce_min_sync(~0u, value);
    __syncthreads();
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = value;
    __syncthreads();
    uint32_t least = NONE;
    for (int warp = 0; warp < (blockDim.x + 31) / 32; warp++) least = min(least, room[warp]);
    return least;
}

/// The same for real numbers, in a block of whole warps.
__device__ inline double least_of_block(double value, double *room) {
    for (int lane = 16; lane > 0; lane /= 2) {
        const double other = __shfl_down_sync(~0u, value, lane);
        value = other < value ? other : value;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = value;
    __syncthreads();
    double least = room[0];
    for (int warp = 1; warp < blockDim.x / 32; warp++) least = room[warp] < least ? room[warp] : least;
    return least;
}

/// Room in shared memory for the sums of a block of up to 1024 threads.
union BlockRoom {
    double reals[32];
    uint32_t numbers[32];
};

/// The largest of the threads' values in a block of 256, and the least of the cells `where` it is; 0 for no positive value.
template <typename V> __device__ double largest_of_block(V value, uint32_t where, BlockRoom &room, uint32_t &cell) {
    double largest = double(value);
    for (int lane = 16; lane > 0; lane /= 2) largest = fmax(largest, __shfl_xor_sync(~0u, largest, lane));
    __syncthreads();
    if (threadIdx.x % 32 == 0) room.reals[threadIdx.x / 32] = largest;
    __syncthreads();
    for (int warp = 0; warp < FACE_CELLS / 32; warp++) largest = fmax(largest, room.reals[warp]);
    const bool has_it = double(value) == largest && largest > 0.0;
    const uint32_t first = least_of_block(has_it ? where : NONE, room.numbers);
    cell = first == NONE ? 0 : first;
    return largest;
}

/// Sums the bookings of a block's threads (a whole number of warps) to a report, which thread 0 gets. Marks and redone
/// cells stay as they are in `report`.
__device__ inline void sum_bookings(const Booking &booking, BlockRoom &room, GroupReport &report) {
    // a block has at most 4096 cells, so two counts fit a number
    const auto both = [&](uint32_t a, uint32_t b) { return sum_of_block(a << 16 | b, room.numbers); };
    const uint32_t usual = both(booking.cold, booking.negative), unusual = both(booking.floored, booking.invalid);
    report.energy_added = sum_of_block(booking.energy_added, room.reals);
    report.cold = usual >> 16;
    report.negative = usual & 0xffff;
    report.floored = unusual >> 16;
    report.invalid = unusual & 0xffff;
    report.floor_energy = report.floor_mass = 0.0;
    report.first_floored = report.first_invalid = 0;
    // all threads know the counts
    if (report.floored > 0) {
        report.floor_energy = sum_of_block(booking.floor_energy, room.reals);
        report.floor_mass = sum_of_block(booking.floor_mass, room.reals);
        report.first_floored = least_of_block(booking.first_floored, room.numbers);
    }
    if (report.invalid > 0) report.first_invalid = least_of_block(booking.first_invalid, room.numbers);
}
