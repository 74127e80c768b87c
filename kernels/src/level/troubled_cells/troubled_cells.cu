// Marks of single slots read, written and cleared: one block a slot, one thread a row. Marks have no precision; the names end as
// all kernels' do.
#include "level/troubled_cells/troubled_cells.cuh"

extern "C" __global__ void read_found_f32(const uint16_t *found, const uint32_t *slots, uint16_t *rows) {
    const size_t from = size_t(slots[blockIdx.x]) * MARK_ROWS, to = size_t(blockIdx.x) * MARK_ROWS;
    rows[to + threadIdx.x] = found[from + threadIdx.x];
}

extern "C" __global__ void write_found_f32(const uint16_t *rows, const uint32_t *slots, uint16_t *found) {
    const size_t from = size_t(blockIdx.x) * MARK_ROWS, to = size_t(slots[blockIdx.x]) * MARK_ROWS;
    found[to + threadIdx.x] = rows[from + threadIdx.x];
}

extern "C" __global__ void clear_found_f32(const uint32_t *slots, uint16_t *found) {
    found[size_t(slots[blockIdx.x]) * MARK_ROWS + threadIdx.x] = 0;
}
