// The emulated device's memory.
#pragma once
#include <cstddef>
#include <cstdint>

constexpr size_t DEVICE_BYTES = size_t(16) << 30;

/// Its address; 0 where there is no room for it.
uint64_t allocate(size_t bytes);
void release(uint64_t address);
/// Bytes of all arrays.
size_t allocated();
/// The bytes at an address, which must lie within one array: `what` is done with them.
void *bytes_at(const char *what, uint64_t address, size_t bytes);
/// From now on a kernel that touches what is no array ends the program with its name.
void watch_memory();
