/* Every way to get memory, and what is said about it. */
#define _GNU_SOURCE
#include "api.h"
#include "check.h"

CUresult cuMemAllocManaged(CUdeviceptr *p, size_t size, unsigned flags);
CUresult cuMemAllocPitch_v2(CUdeviceptr *p, size_t *pitch, size_t w, size_t h, unsigned e);
CUresult cuMemAllocAsync(CUdeviceptr *p, size_t size, CUstream s);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *p, size_t size, CUmemoryPool pool, CUstream s);
CUresult cuMemFreeAsync(CUdeviceptr p, CUstream s);
CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props);
CUresult cuMemPoolDestroy(CUmemoryPool pool);
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value);
CUresult cuMemHostRegister_v2(void *p, size_t size, unsigned flags);
CUresult cuMemHostUnregister(void *p);
CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t size,
                     const CUmemAllocationProp *prop, unsigned long long flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle h);
CUresult cuMemAddressReserve(CUdeviceptr *p, size_t size, size_t align, CUdeviceptr wish,
                             unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr p, size_t size);
CUresult cuMemMap(CUdeviceptr p, size_t size, size_t offset, CUmemGenericAllocationHandle h,
                  unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr p, size_t size);
CUresult cuMemSetAccess(CUdeviceptr p, size_t size, const CUmemAccessDesc *d, size_t count);
CUresult cuPointerGetAttribute(void *out, int attribute, CUdeviceptr p);
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *c);
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *c);
CUresult cuArrayCreate_v2(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *d);
CUresult cuArrayDestroy(CUarray a);
CUresult cuLaunchHostFunc(CUstream s, CUhostFn fn, void *user);
CUresult cuStreamWriteValue32_v2(CUstream s, CUdeviceptr p, unsigned value, unsigned flags);
CUresult cuStreamWaitValue32_v2(CUstream s, CUdeviceptr p, unsigned value, unsigned flags);

static CUstream stream;

static size_t free_bytes(void) {
    size_t f = 0;
    size_t total = 0;
    OK(cuMemGetInfo_v2(&f, &total));
    return f;
}

static void every_kind_is_counted_and_given_back(void) {
    size_t before = free_bytes();
    size_t pitch = 0;
    CUdeviceptr p[5];
    OK(cuMemAlloc_v2(&p[0], 1000));
    OK(cuMemAllocPitch_v2(&p[1], &pitch, 100, 10, 4));
    OK(cuMemAllocManaged(&p[2], 4096, 1));
    OK(cuMemAllocAsync(&p[3], 4096, stream));
    CUmemPoolProps props = {.allocType = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemoryPool pool;
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuMemAllocFromPoolAsync(&p[4], 4096, pool, stream));
    uint64_t used = 0;
    OK(cuMemPoolGetAttribute(pool, 7, &used));
    CHECK_EQ(used, 4096);
    CHECK(pitch >= 100 && pitch % 512 == 0);
    CHECK_EQ(before - free_bytes(), 1024 + 10 * pitch + 3 * 4096);
    OK(cuMemFree_v2(p[0]));
    OK(cuMemFree_v2(p[1]));
    OK(cuMemFree_v2(p[2]));
    OK(cuMemFreeAsync(p[3], stream));
    CHECK_EQ(cuMemFreeAsync(p[3] + 1, stream), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeAsync(p[4], stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemPoolDestroy(pool));
    CHECK_EQ(before, free_bytes());
}

static void two_mappings_of_one_allocation_see_the_same_bytes(void) {
    const size_t size = 4u << 20;
    size_t before = free_bytes();
    CUmemAllocationProp prop = {.type = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, .flags = 3};
    CUmemGenericAllocationHandle h;
    CUdeviceptr at;
    OK(cuMemCreate(&h, size, &prop, 0));
    CHECK_EQ(before - free_bytes(), size);
    OK(cuMemAddressReserve(&at, 2 * size, 0, 0, 0));
    OK(cuMemMap(at, size, 0, h, 0));
    OK(cuMemMap(at + size, size, 0, h, 0));
    CHECK_EQ(cuMemsetD8_v2(at, 7, 16), CUDA_ERROR_INVALID_VALUE); /* no access yet */
    OK(cuMemSetAccess(at, 2 * size, &access, 1));
    OK(cuMemRelease(h)); /* the mappings keep it */
    OK(cuMemsetD8_v2(at, 7, 16));
    unsigned char byte = 0;
    OK(cuMemcpyDtoH_v2(&byte, at + size + 15, 1));
    CHECK_EQ(byte, 7);
    CHECK_EQ(before - free_bytes(), size);
    OK(cuMemUnmap(at, 2 * size));
    CHECK_EQ(before, free_bytes());
    CHECK_EQ(cuMemsetD8_v2(at, 7, 16), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAddressFree(at, 2 * size));
    CHECK_EQ(cuMemMap(at, size, 0, h, 0), CUDA_ERROR_INVALID_VALUE);
}

static void host_locations_do_not_count(void) {
    size_t before = free_bytes();
    for (int type = CU_MEM_LOCATION_TYPE_HOST; type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
         type++) {
        CUmemAllocationProp prop = {.type = 1, .location = {type, 0}};
        CUmemGenericAllocationHandle h;
        OK(cuMemCreate(&h, 2u << 20, &prop, 0));
        CHECK_EQ(before, free_bytes());
        OK(cuMemRelease(h));
        CHECK_EQ(cuMemRelease(h), CUDA_ERROR_INVALID_VALUE);
    }
    CUmemAllocationProp none = {.type = 1, .location = {9, 0}};
    CUmemGenericAllocationHandle h;
    CHECK_EQ(cuMemCreate(&h, 2u << 20, &none, 0), CUDA_ERROR_INVALID_VALUE);
}

static void pointers_know_what_they_are(void) {
    CUdeviceptr p;
    void *pinned;
    static char own[8192];
    int type = 0;
    OK(cuMemAlloc_v2(&p, 64));
    OK(cuMemHostAlloc(&pinned, 64, 0));
    OK(cuMemHostRegister_v2(own, sizeof(own), 0));
    OK(cuPointerGetAttribute(&type, 2, p + 10));
    CHECK_EQ(type, CU_MEMORYTYPE_DEVICE);
    OK(cuPointerGetAttribute(&type, 2, (CUdeviceptr)(uintptr_t)pinned));
    CHECK_EQ(type, CU_MEMORYTYPE_HOST);
    OK(cuPointerGetAttribute(&type, 2, (CUdeviceptr)(uintptr_t)(own + 100)));
    CHECK_EQ(type, CU_MEMORYTYPE_HOST);
    CHECK_EQ(cuPointerGetAttribute(&type, 2, (CUdeviceptr)(uintptr_t)&type),
             CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemHostRegister_v2(own + 1, 1, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    OK(cuMemHostUnregister(own));
    CHECK_EQ(cuMemHostUnregister(own), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    OK(cuMemFreeHost(pinned));
    OK(cuMemFree_v2(p));
}

static void rows_layers_and_arrays_are_copied(void) {
    enum { W = 40, H = 6, D = 3 };
    unsigned char host[D][H][W];
    unsigned char back[D][H][W];
    CUdeviceptr p;
    for (int i = 0; i < D * H * W; i++) {
        (&host[0][0][0])[i] = (unsigned char)(i * 7);
    }
    OK(cuMemAlloc_v2(&p, 64 * 8 * D));
    CUDA_MEMCPY3D up = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = host,
                        .srcPitch = W,
                        .srcHeight = H,
                        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                        .dstDevice = p,
                        .dstPitch = 64,
                        .dstHeight = 8,
                        .WidthInBytes = W,
                        .Height = H,
                        .Depth = D};
    CUDA_MEMCPY3D down = {.dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = back,
                          .dstPitch = W,
                          .dstHeight = H,
                          .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = p,
                          .srcPitch = 64,
                          .srcHeight = 8,
                          .WidthInBytes = W,
                          .Height = H,
                          .Depth = D};
    OK(cuMemcpy3D_v2(&up));
    OK(cuMemcpy3D_v2(&down));
    CHECK(memcmp(host, back, sizeof(host)) == 0);
    CUDA_ARRAY_DESCRIPTOR d = {.Width = W, .Height = H, .Format = 1, .NumChannels = 1};
    CUarray a;
    OK(cuArrayCreate_v2(&a, &d));
    CUDA_MEMCPY2D in = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                        .srcDevice = p,
                        .srcPitch = 64,
                        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                        .dstArray = a,
                        .WidthInBytes = W,
                        .Height = H};
    memset(back, 0, sizeof(back));
    CUDA_MEMCPY2D out = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                         .srcArray = a,
                         .dstMemoryType = CU_MEMORYTYPE_HOST,
                         .dstHost = back,
                         .dstPitch = W,
                         .WidthInBytes = W,
                         .Height = H};
    OK(cuMemcpy2D_v2(&in));
    OK(cuMemcpy2D_v2(&out));
    CHECK(memcmp(host[0], back[0], sizeof(host[0])) == 0);
    OK(cuArrayDestroy(a));
    OK(cuMemFree_v2(p));
}

static void bump(void *user) {
    __atomic_add_fetch((int *)user, 1, __ATOMIC_RELEASE);
}

static void host_functions_and_values_keep_the_order(void) {
    void *pinned;
    int called = 0;
    OK(cuMemHostAlloc(&pinned, 64, 0));
    uint32_t *word = pinned;
    *word = 0;
    CUdeviceptr p = (CUdeviceptr)(uintptr_t)word;
    OK(cuStreamWaitValue32_v2(stream, p, 1, 1));
    OK(cuLaunchHostFunc(stream, bump, &called));
    OK(cuStreamWriteValue32_v2(stream, p + 4, 9, 0));
    CHECK_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    CHECK_EQ(__atomic_load_n(&called, __ATOMIC_ACQUIRE), 0);
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
    OK(cuStreamSynchronize(stream));
    CHECK_EQ(called, 1);
    CHECK_EQ(word[1], 9);
    OK(cuMemFreeHost(pinned));
}

int main(void) {
    CUcontext ctx;
    check_node("A100-40", "real-like");
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&ctx, 0, 0));
    OK(cuStreamCreate(&stream, 0));
    RUN("every kind is counted and given back", every_kind_is_counted_and_given_back);
    RUN("two mappings of one allocation see the same bytes",
        two_mappings_of_one_allocation_see_the_same_bytes);
    RUN("host locations do not count", host_locations_do_not_count);
    RUN("pointers know what they are", pointers_know_what_they_are);
    RUN("rows, layers and arrays are copied", rows_layers_and_arrays_are_copied);
    RUN("host functions and values keep the order", host_functions_and_values_keep_the_order);
    OK(cuCtxDestroy_v2(ctx));
    return finish("test_memory");
}
