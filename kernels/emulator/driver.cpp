// libcuda.so.1 for one emulated GPU: the driver's functions that comove calls. Everything is done when a call returns.
// Modules are what lies in the folder `modules` beside this library, whatever the program loads.
#include "block.h"
#include "memory.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>

namespace {

enum Result { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_CONTEXT = 201, NOT_FOUND = 500, NOT_SUPPORTED = 801 };

constexpr unsigned USUAL_SHARED = 48 << 10, MOST_SHARED = 227 << 10, MOST_THREADS = 1024;
/// Few, so that kernels whose blocks take one tile after another do so in tests.
constexpr int MULTIPROCESSORS = 3;

struct Function {
    Module module;
    Kernel kernel;
    unsigned shared_bytes = USUAL_SHARED;
};

/// Blocks and their shared memory exist once.
std::mutex lock;

std::map<std::string, Function> load_modules() {
    Dl_info own;
    dladdr(reinterpret_cast<void *>(load_modules), &own);
    std::map<std::string, Function> functions;
    for (const auto &entry : std::filesystem::directory_iterator(
             std::filesystem::absolute(own.dli_fname).parent_path() / "modules")) {
        if (entry.path().extension() != ".so") continue;
        void *library = dlopen(entry.path().c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!library) fail("%s", dlerror());
        const auto *module = static_cast<const Module *>(dlsym(library, "emulator_module"));
        if (!module) fail("%s", dlerror());
        for (const Kernel *kernel = module->kernels; kernel->name; kernel++)
            if (!functions.emplace(kernel->name, Function{*module, *kernel}).second) fail("two of %s", kernel->name);
    }
    return functions;
}

std::map<std::string, Function> &functions() {
    static std::map<std::string, Function> all = load_modules();
    return all;
}

double milliseconds() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::milli>(now).count();
}

/// What stands for handles that lead nowhere.
void *const HANDLE = reinterpret_cast<void *>(1);

/// What calls of this thread are for.
thread_local void *current = nullptr;

/// SUCCESS for a thread that has said what its calls are for.
int in_context() { return current ? SUCCESS : INVALID_CONTEXT; }

using Address = uint64_t;

} // namespace

extern "C" {

int cuInit(unsigned) { return SUCCESS; }
int cuDriverGetVersion(int *version) { return *version = 13000, SUCCESS; }
int cuGetErrorString(int, const char **text) { return *text = "an error of the emulated GPU", SUCCESS; }

int cuDeviceGetCount(int *count) { return *count = 1, SUCCESS; }
int cuDeviceGet(int *device, int) { return *device = 0, SUCCESS; }
int cuDeviceGetName(char *name, int length, int) { return snprintf(name, size_t(length), "emulated GPU"), SUCCESS; }
int cuDeviceGetPCIBusId(char *name, int length, int) { return snprintf(name, size_t(length), "emulated"), SUCCESS; }
int cuDeviceTotalMem_v2(size_t *bytes, int) { return *bytes = DEVICE_BYTES, SUCCESS; }
int cuDeviceGetAttribute(int *value, int attribute, int) {
    switch (attribute) {
    case 16: return *value = MULTIPROCESSORS, SUCCESS;
    case 75: return *value = 9, SUCCESS; // compute capability, major
    case 76: return *value = 0, SUCCESS; // and minor
    case 95: return *value = 0, SUCCESS; // blocks that wait for each other
    case 97: return *value = MOST_SHARED, SUCCESS;
    default: return NOT_SUPPORTED;
    }
}
int cuDeviceGetDefaultMemPool(void **pool, int) { return *pool = HANDLE, SUCCESS; }
int cuMemPoolSetAttribute(void *, int, void *) { return SUCCESS; }
/// What the pool holds and what of it is arrays: no more than these, since freed ones are gone.
int cuMemPoolGetAttribute(void *, int attribute, void *value) {
    if (attribute != 5 && attribute != 7) return INVALID_VALUE;
    return *static_cast<uint64_t *>(value) = allocated(), SUCCESS;
}
int cuMemPoolTrimTo(void *, size_t) { return SUCCESS; }

int cuDevicePrimaryCtxRetain(void **context, int) { return *context = HANDLE, SUCCESS; }
int cuDevicePrimaryCtxRelease_v2(int) { return SUCCESS; }
int cuCtxSetCurrent(void *context) { return current = context, SUCCESS; }
int cuCtxGetCurrent(void **context) { return *context = current, SUCCESS; }
int cuCtxGetDevice(int *device) { return *device = 0, in_context(); }
int cuCtxSynchronize() { return in_context(); }

int cuStreamCreateWithPriority(void **stream, unsigned, int) { return *stream = HANDLE, in_context(); }
int cuStreamDestroy_v2(void *) { return SUCCESS; }
int cuStreamSynchronize(void *) { return SUCCESS; }
int cuStreamWaitEvent(void *, void *, unsigned) { return SUCCESS; }

int cuEventCreate(void **event, unsigned) { return *event = new double(0.0), in_context(); }
int cuEventDestroy_v2(void *event) { return delete static_cast<double *>(event), SUCCESS; }
int cuEventRecord(void *event, void *) { return *static_cast<double *>(event) = milliseconds(), SUCCESS; }
int cuEventQuery(void *) { return SUCCESS; }
int cuEventSynchronize(void *) { return SUCCESS; }
int cuEventElapsedTime(float *elapsed, void *from, void *to) {
    return *elapsed = float(*static_cast<double *>(to) - *static_cast<double *>(from)), SUCCESS;
}

int cuMemGetInfo_v2(size_t *free, size_t *total) {
    return *total = DEVICE_BYTES, *free = DEVICE_BYTES - allocated(), in_context();
}
int cuMemAllocHost_v2(void **start, size_t bytes) { return *start = malloc(bytes), in_context(); }
int cuMemFreeHost(void *start) { return free(start), SUCCESS; }
int cuMemAllocAsync(Address *array, size_t bytes, void *) {
    if (in_context() != SUCCESS) return INVALID_CONTEXT;
    return *array = allocate(bytes), *array ? SUCCESS : OUT_OF_MEMORY;
}
int cuMemAlloc_v2(Address *array, size_t bytes) { return cuMemAllocAsync(array, bytes, nullptr); }
int cuMemFree_v2(Address array) { return release(array), in_context(); }
int cuIpcGetMemHandle(void *, Address) { return NOT_SUPPORTED; }
int cuMemFreeAsync(Address array, void *) { return release(array), in_context(); }
int cuMemcpyHtoD_v2(Address to, const void *from, size_t bytes) {
    return memcpy(bytes_at("write", to, bytes), from, bytes), in_context();
}
int cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes, void *) {
    return cuMemcpyHtoD_v2(to, from, bytes);
}
int cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, void *) {
    return memcpy(to, bytes_at("read", from, bytes), bytes), in_context();
}
int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, void *) {
    return memcpy(bytes_at("write", to, bytes), bytes_at("read", from, bytes), bytes), in_context();
}
int cuMemsetD8Async(Address at, unsigned char value, size_t bytes, void *) {
    return memset(bytes_at("set", at, bytes), value, bytes), in_context();
}

int cuModuleLoadData(void **module, const void *) { return *module = HANDLE, SUCCESS; }
int cuModuleLoadDataEx(void **module, const void *, unsigned, void *, void *) { return *module = HANDLE, SUCCESS; }
int cuModuleUnload(void *) { return SUCCESS; }
int cuModuleGetFunction(void **function, void *, const char *name) {
    const std::lock_guard held(lock);
    const auto found = functions().find(name);
    if (found == functions().end()) return NOT_FOUND;
    return *function = &found->second, SUCCESS;
}
int cuFuncSetAttribute(void *function, int attribute, int value) {
    constexpr int MAX_DYNAMIC_SHARED_SIZE_BYTES = 8;
    if (attribute != MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 || value > int(MOST_SHARED)) return INVALID_VALUE;
    return static_cast<Function *>(function)->shared_bytes = unsigned(value), SUCCESS;
}
int cuLaunchKernel(void *handle, unsigned blocks, unsigned blocks_y, unsigned blocks_z, unsigned threads,
                   unsigned threads_y, unsigned threads_z, unsigned shared_bytes, void *, void **arguments, void **) {
    if (in_context() != SUCCESS) return INVALID_CONTEXT;
    const std::lock_guard held(lock);
    const auto &function = *static_cast<const Function *>(handle);
    if (blocks_y != 1 || blocks_z != 1 || threads_y != 1 || threads_z != 1) return NOT_SUPPORTED;
    if (blocks == 0 || threads == 0 || threads > MOST_THREADS || shared_bytes > function.shared_bytes)
        return INVALID_VALUE;
    watch_memory();
    gridDim = {blocks, 1, 1};
    blockDim = {threads, 1, 1};
    // the last first: nothing may count on their order
    for (unsigned block = blocks; block-- > 0;) {
        blockIdx = {block, 0, 0};
        run_block(function.module, function.kernel, arguments, shared_bytes);
    }
    return SUCCESS;
}

} // extern "C"
