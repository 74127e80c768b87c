// Arrays between pages that nobody may touch: a kernel that leaves its array ends the program, and says so.
#include "memory.h"
#include "block.h"

#include <csignal>
#include <cstring>
#include <map>
#include <mutex>
#include <sys/mman.h>

namespace {

constexpr size_t PAGE = 4096;
/// Fresh memory: as an index it is out of all bounds, as a number it agrees with nothing.
constexpr int POISON = 0xcd;

std::mutex lock;
std::map<uint64_t, size_t> arrays; // bytes by address
size_t all_bytes = 0;              // of all of them

/// An array ends where its last page does, but for what keeps its start at a multiple of 16.
size_t in_memory(size_t bytes) { return (bytes + 15) / 16 * 16; }
size_t in_pages(size_t bytes) { return (in_memory(bytes) + PAGE - 1) / PAGE * PAGE; }

void report_fault(int, siginfo_t *fault, void *) {
    const auto address = reinterpret_cast<uint64_t>(fault->si_addr);
    if (!running()) {
        signal(SIGSEGV, SIG_DFL);
        return; // and fails again, without us
    }
    const auto after = arrays.upper_bound(address);
    if (after != arrays.begin()) {
        const auto [start, bytes] = *std::prev(after);
        if (address - start < bytes + PAGE) fail("%zu bytes into an array of %zu", size_t(address - start), bytes);
    }
    if (after != arrays.end() && after->first - address < PAGE)
        fail("%zu bytes before an array of %zu", size_t(after->first - address), after->second);
    fail("address %p is in no array", fault->si_addr);
}

} // namespace

uint64_t allocate(size_t bytes) {
    if (bytes > DEVICE_BYTES - allocated()) return 0;
    const size_t pages = in_pages(bytes), all = pages + 2 * PAGE;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *mapped = mmap(nullptr, all, PROT_NONE, flags, -1, 0);
    if (mapped == MAP_FAILED) return 0;
    char *first = static_cast<char *>(mapped) + PAGE;
    if (mprotect(first, pages, PROT_READ | PROT_WRITE)) return 0;
    memset(first, POISON, pages);
    const auto start = reinterpret_cast<uint64_t>(first + pages - in_memory(bytes));
    const std::lock_guard held(lock);
    arrays[start] = bytes;
    all_bytes += bytes;
    return start;
}

void release(uint64_t address) {
    const std::lock_guard held(lock);
    const auto array = arrays.find(address);
    if (array == arrays.end()) fail("an array is freed that is none");
    const size_t pages = in_pages(array->second);
    all_bytes -= array->second;
    const uint64_t first = address + in_memory(array->second) - pages;
    arrays.erase(array);
    munmap(reinterpret_cast<void *>(first - PAGE), pages + 2 * PAGE);
}

size_t allocated() {
    const std::lock_guard held(lock);
    return all_bytes;
}

void *bytes_at(const char *what, uint64_t address, size_t bytes) {
    const std::lock_guard held(lock);
    const auto after = arrays.upper_bound(address);
    const auto array = after == arrays.begin() ? arrays.end() : std::prev(after);
    if (array == arrays.end() || address + bytes > array->first + array->second)
        fail("%zu bytes to %s are not in one array", bytes, what);
    return reinterpret_cast<void *>(address);
}

void watch_memory() {
    struct sigaction action = {};
    action.sa_sigaction = report_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, nullptr);
}
