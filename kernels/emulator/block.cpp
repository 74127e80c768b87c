// A block of threads on one processor: a fiber a thread, which runs until it waits.
#include "block.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <vector>

Index threadIdx, blockIdx, blockDim, gridDim;
void *emulator_dynamic;

extern "C" void emulator_switch(void **save, void *resume);

#ifndef __x86_64__
#error "fibers are switched on x86-64 only"
#endif
// Keeps what a function must keep for its caller, on the old stack; takes it from the new one.
asm(R"(
.text
.hidden emulator_switch
.globl emulator_switch
.type emulator_switch, @function
emulator_switch:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    ret
)");

namespace {

enum class State { READY, AT_WARP, AT_BARRIER, DONE };

struct Fiber {
    void *stack_pointer = nullptr;
    char *stack = nullptr;
    State state = State::DONE;
    const char *operation = nullptr;
    bool vote = false;
    // exchanges take two rooms by turns: a lane may be at the next one before others have read the last
    bool turn = false;
};

constexpr unsigned WARP = 32, MOST_THREADS = 1024;
constexpr size_t STACK = 256 << 10, GUARD = 4096;
/// Shared memory starts as this, so that a kernel cannot count on what another left there.
constexpr int POISON = 0xcd;

Fiber fibers[MOST_THREADS];
Lane rooms[2][MOST_THREADS];
unsigned current;
void *scheduler;
bool barrier_vote;
const Kernel *kernel_running;
void **kernel_arguments;

void wait(State state) {
    fibers[current].state = state;
    emulator_switch(&fibers[current].stack_pointer, scheduler);
}

void thread() {
    kernel_running->call(kernel_arguments);
    wait(State::DONE);
    abort(); // a thread that is done is never resumed
}

void start(Fiber &fiber) {
    if (!fiber.stack) {
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        fiber.stack = static_cast<char *>(mmap(nullptr, STACK, PROT_READ | PROT_WRITE, flags, -1, 0));
        mprotect(fiber.stack, GUARD, PROT_NONE);
    }
    // as after a call of `thread` from nowhere; at its first instruction the stack is 8 bytes off a multiple of 16
    void **top = reinterpret_cast<void **>(fiber.stack + STACK - 64);
    *--top = nullptr;
    *--top = reinterpret_cast<void *>(thread);
    for (int saved = 0; saved < 6; saved++) *--top = nullptr;
    fiber.stack_pointer = top;
    fiber.state = State::READY;
    fiber.turn = false;
}

/// Runs the threads of a warp until none can go on without the other warps. Every other block runs them backward, so
/// that what depends on their order shows.
void run_warp(unsigned first, unsigned end) {
    for (;;) {
        for (unsigned n = 0; n < end - first; n++) {
            current = blockIdx.x % 2 ? end - 1 - n : first + n;
            if (fibers[current].state != State::READY) continue;
            threadIdx = {current, 0, 0};
            emulator_switch(&scheduler, fibers[current].stack_pointer);
        }
        const auto waits = [](const Fiber &fiber) { return fiber.state == State::AT_WARP; };
        const unsigned waiting = std::count_if(fibers + first, fibers + end, waits);
        if (waiting == 0) return;
        const Fiber *lane = std::find_if(fibers + first, fibers + end, waits);
        if (waiting != end - first) fail("%s by %u of the warp's %u threads", lane->operation, waiting, end - first);
        for (unsigned n = first; n < end; n++) {
            const char *other = fibers[n].operation;
            if (strcmp(other, lane->operation)) fail("%s by one lane, %s by another", lane->operation, other);
            fibers[n].state = State::READY;
        }
    }
}

/// The thread after the last of the warp that begins with `first`.
unsigned warp_end(unsigned first) { return first + WARP < blockDim.x ? first + WARP : blockDim.x; }

} // namespace

bool emulator_barrier(bool vote) {
    fibers[current].vote = vote;
    wait(State::AT_BARRIER);
    return barrier_vote;
}

void emulator_barrier_of_blocks() { fail("a barrier of %u blocks: not emulated", gridDim.x); }

const Lane *emulator_exchange(const char *operation, unsigned mask, const void *value, size_t bytes) {
    const unsigned first = current / WARP * WARP, lanes = warp_end(first) - first;
    if (mask != ~0u && mask != (1ull << lanes) - 1) fail("%s with mask %x: not emulated", operation, mask);
    Fiber &fiber = fibers[current];
    fiber.operation = operation;
    Lane *room = rooms[fiber.turn];
    fiber.turn = !fiber.turn;
    memcpy(room[current].bytes, value, bytes);
    for (unsigned missing = lanes; missing < WARP; missing++) memcpy(room[first + missing].bytes, value, bytes);
    wait(State::AT_WARP);
    return room + first;
}

void run_block(const Module &module, const Kernel &kernel, void **arguments, unsigned dynamic_bytes) {
    static std::vector<Lane> dynamic;
    dynamic.resize(dynamic_bytes / sizeof(Lane) + 1);
    emulator_dynamic = dynamic.data();
    memset(emulator_dynamic, POISON, dynamic_bytes);
    memset(module.shared, POISON, module.shared_end - module.shared);
    kernel_running = &kernel;
    kernel_arguments = arguments;
    const unsigned threads = blockDim.x;
    std::for_each(fibers, fibers + threads, start);
    for (;;) {
        for (unsigned first = 0; first < threads; first += WARP) run_warp(first, warp_end(first));
        const auto done = [](const Fiber &fiber) { return fiber.state == State::DONE; };
        const unsigned gone = std::count_if(fibers, fibers + threads, done);
        if (gone == threads) break;
        if (gone > 0) fail("a barrier that %u of %u threads do not reach", gone, threads);
        barrier_vote = std::any_of(fibers, fibers + threads, [](const Fiber &fiber) { return fiber.vote; });
        for (unsigned n = 0; n < threads; n++) fibers[n].state = State::READY;
    }
    kernel_running = nullptr;
}

const char *running() { return kernel_running ? kernel_running->name : nullptr; }

void fail(const char *format, ...) {
    va_list values;
    va_start(values, format);
    fprintf(stderr, "emulated GPU: ");
    vfprintf(stderr, format, values);
    va_end(values);
    if (running()) fprintf(stderr, " (%s, block %u, thread %u)", running(), blockIdx.x, threadIdx.x);
    fprintf(stderr, "\n");
    abort();
}
