/* The CUDA driver's entry points, forwarded to libcuda.so.1 where there is one.
 *
 * Linked in place of the driver's own library, so that the program starts on machines without a driver: there every
 * call returns CUDA_ERROR_NO_DEVICE. An entry jumps through a pointer that is set before main, so a call costs one
 * indirect jump more. */

#include <dlfcn.h>

#define HIDDEN __attribute__((visibility("hidden"), used))
enum { CUDA_ERROR_NO_DEVICE = 100 };

static int missing(void) { return CUDA_ERROR_NO_DEVICE; }

#if defined(__x86_64__)
#define JUMP(name) "jmp *forward_" #name "(%rip)\n"
#elif defined(__aarch64__)
#define JUMP(name) "adrp x16, forward_" #name "\n ldr x16, [x16, :lo12:forward_" #name "]\n br x16\n"
#else
#error "the CUDA driver can be forwarded to on x86-64 and 64-bit Arm only"
#endif

#define ENTRY(name) \
    HIDDEN void *forward_##name = (void *)missing; \
    __asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ", %function\n" #name ":\n" JUMP(name));

/* What cust calls and what kernels/src/cuda calls by cust::sys. */
#define ALL(F) \
    F(cuArray3DCreate_v2) F(cuArray3DGetDescriptor_v2) F(cuArrayDestroy) F(cuCtxCreate_v2) F(cuCtxDestroy_v2) \
    F(cuCtxGetApiVersion) F(cuCtxGetCacheConfig) F(cuCtxGetCurrent) F(cuCtxGetDevice) F(cuCtxGetFlags) \
    F(cuCtxGetLimit) F(cuCtxGetSharedMemConfig) F(cuCtxGetStreamPriorityRange) F(cuCtxPopCurrent_v2) \
    F(cuCtxSetCacheConfig) F(cuCtxSetCurrent) F(cuCtxSetLimit) F(cuCtxSetSharedMemConfig) F(cuCtxSynchronize) \
    F(cuDestroyExternalMemory) F(cuDeviceGet) F(cuDeviceGetAttribute) F(cuDeviceGetCount) \
    F(cuDeviceGetDefaultMemPool) F(cuDeviceGetName) F(cuDeviceGetPCIBusId) F(cuDevicePrimaryCtxRelease_v2) \
    F(cuDevicePrimaryCtxReset_v2) F(cuDevicePrimaryCtxRetain) F(cuDevicePrimaryCtxSetFlags_v2) \
    F(cuDeviceTotalMem_v2) F(cuDriverGetVersion) F(cuEventCreate) F(cuEventDestroy_v2) F(cuEventElapsedTime) \
    F(cuEventQuery) F(cuEventRecord) F(cuEventSynchronize) F(cuFuncGetAttribute) F(cuFuncSetAttribute) \
    F(cuFuncSetCacheConfig) F(cuFuncSetSharedMemConfig) F(cuGetErrorString) F(cuGraphDestroy) \
    F(cuGraphExecDestroy) F(cuGraphInstantiate_v2) F(cuGraphLaunch) F(cuImportExternalMemory) F(cuInit) \
    F(cuIpcCloseMemHandle) F(cuIpcGetMemHandle) F(cuIpcOpenMemHandle_v2) \
    F(cuLaunchCooperativeKernel) F(cuLaunchKernel) F(cuLinkComplete) F(cuLinkCreate_v2) F(cuLinkDestroy) F(cuMemAllocAsync) \
    F(cuMemAllocHost_v2) F(cuMemAlloc_v2) F(cuMemFreeAsync) F(cuMemFreeHost) F(cuMemFree_v2) F(cuMemGetInfo_v2) F(cuMemPoolGetAttribute) \
    F(cuMemPoolSetAttribute) F(cuMemPoolTrimTo) \
    F(cuMemcpyDtoDAsync_v2) F(cuMemcpyDtoHAsync_v2) F(cuMemcpyHtoDAsync_v2) F(cuMemcpyHtoD_v2) \
    F(cuMemsetD8Async) F(cuModuleGetFunction) F(cuModuleLoadData) F(cuModuleLoadDataEx) F(cuModuleUnload) \
    F(cuOccupancyAvailableDynamicSMemPerBlock) F(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
    F(cuOccupancyMaxPotentialBlockSize) F(cuStreamBeginCapture_v2) F(cuStreamCreateWithPriority) \
    F(cuStreamDestroy_v2) F(cuStreamEndCapture) F(cuStreamGetFlags) F(cuStreamGetPriority) \
    F(cuStreamSynchronize) F(cuStreamWaitEvent) F(cuSurfObjectCreate) F(cuSurfObjectDestroy) \
    F(cuSurfObjectGetResourceDesc) F(cuTexObjectCreate) F(cuTexObjectDestroy) F(cuTexObjectGetResourceDesc)

#define F ENTRY
ALL(F)
#undef F

__attribute__((constructor)) static void find_driver(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver) return;
#define F(name) \
    { \
        void *entry = dlsym(driver, #name); \
        if (entry) forward_##name = entry; \
    }
    ALL(F)
#undef F
}
