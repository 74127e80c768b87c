// What kernels and the emulated device have in common: the threads of a block.
#pragma once
#include <cstddef>

/// Blocks and grids have one dimension here; y and z of all four are 0 or 1.
struct Index {
    unsigned x, y, z;
};

/// A kernel with its parameters as the driver gets them: one pointer to each.
struct Kernel {
    const char *name;
    void (*call)(void **arguments);
};

/// What is exported, as `emulator_module`, by the library that a `.cu` file becomes.
struct Module {
    const Kernel *kernels; // up to one without a name
    char *shared, *shared_end; // the shared variables of all of them
};

/// The value of one lane.
struct alignas(16) Lane {
    char bytes[16];
};

extern "C" {
/// Of the thread that runs.
extern Index threadIdx, blockIdx, blockDim, gridDim;
/// Of the block.
extern void *emulator_dynamic;

/// Waits until all threads of the block are here; whether `vote` is set by any.
bool emulator_barrier(bool vote);
/// Ends the program: blocks do not wait for each other here.
[[noreturn]] void emulator_barrier_of_blocks();
/// Waits until all lanes of the warp have handed in a value for this operation; the values of all of them. Lanes that
/// the warp does not have hold this lane's value.
const Lane *emulator_exchange(const char *operation, unsigned mask, const void *value, size_t bytes);
}

/// Runs one block of a module's kernel.
void run_block(const Module &module, const Kernel &kernel, void **arguments, unsigned dynamic_bytes);
/// What runs, for messages.
const char *running();
/// Ends the program: a kernel does what a GPU would not forgive.
[[noreturn]] void fail(const char *format, ...);
