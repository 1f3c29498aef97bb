/* The kernels that the software GPU knows: what they do to memory, and how long they take.
 * docs/device-model.md lists their parameters; tests/softgpu/kernels has the PTX that does the
 * same on a GPU. */
#include <string.h>

#include "driver.h"

/* A launch that does nothing still occupies the device this long. */
static const double SG_KERNEL_FLOOR_NS = 2000;
static const double SG_OPAQUE_NS = 10000;
static const uint64_t SG_FOLD = 6364136223846793005u;

static uint64_t param(const struct sg_work *w, uint32_t i) {
    const struct sg_spec *spec = w->kernel.spec;
    uint64_t v = 0;
    if (w->kernel.params != NULL && i < spec->param_count) {
        uint32_t size = spec->param_size[i] < 8 ? spec->param_size[i] : 8;
        memcpy(&v, w->kernel.params + spec->param_offset[i], size);
    }
    return v;
}

static float param_f32(const struct sg_work *w, uint32_t i) {
    uint32_t bits = (uint32_t)param(w, i);
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

uint64_t sg_param_u64(const struct sg_work *w, uint32_t i) {
    return param(w, i);
}

/* Bytes moved to and from device memory. */
static double traffic(const struct sg_work *w) {
    switch (w->kernel.spec->kind) {
    case SG_KIND_FILL:
        return 4.0 * (double)param(w, 2);
    case SG_KIND_COPY:
    case SG_KIND_STREAM:
        return 8.0 * (double)param(w, 2);
    case SG_KIND_SAXPY:
        return 12.0 * (double)param(w, 3);
    case SG_KIND_CHECKSUM:
        return 4.0 * (double)param(w, 2);
    default:
        return 0;
    }
}

static double gemm_ns(const struct sg_work *w, int device) {
    const struct softgpu_model *m = sg_model(device);
    double flops = 2.0 * (double)param(w, 3) * (double)param(w, 4) * (double)param(w, 5);
    double per_ns = 2.0 * sg_unit(device)->sm_count * m->cores_per_sm * m->sm_clock_mhz / 1000.0;
    return flops / per_ns;
}

/* A copy within the device reads and writes. */
static double dram_bytes_per_ns(int device) {
    return 2 * sg_unit(device)->bytes_per_ns[SOFTGPU_QUEUE_D2D];
}

double sg_kernel_ns(const struct sg_work *w, int device) {
    const struct sg_spec *spec = w->kernel.spec;
    if (sg.null_profile) {
        return 0;
    }
    if (spec->time_param >= 0) {
        return (double)param(w, (uint32_t)spec->time_param);
    }
    if (spec->time_ns >= 0) {
        return spec->time_ns;
    }
    switch (spec->kind) {
    case SG_KIND_OPAQUE:
        return SG_OPAQUE_NS;
    case SG_KIND_SPIN:
        return (double)param(w, 0);
    case SG_KIND_BUSY:
        return (double)param(w, 1);
    case SG_KIND_GEMM:
        return SG_KERNEL_FLOOR_NS + gemm_ns(w, device);
    default:
        return SG_KERNEL_FLOOR_NS + traffic(w) / dram_bytes_per_ns(device);
    }
}

/* The memory of `count` elements at parameter i, or NULL if it is not all there. */
static void *memory_of(const struct sg_work *w, uint32_t i, uint64_t count, size_t size) {
    void *p = (void *)(uintptr_t)param(w, i);
    if (count > SIZE_MAX / size || ((uintptr_t)p & (size - 1)) != 0) {
        return NULL;
    }
    return sg_range_ok(p, count * size) ? p : NULL;
}

static CUresult fill(const struct sg_work *w) {
    uint64_t n = param(w, 2);
    uint32_t *to = memory_of(w, 0, n, 4);
    if (to == NULL) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    uint32_t value = (uint32_t)param(w, 1);
    for (uint64_t i = 0; i < n; i++) {
        to[i] = value;
    }
    return CUDA_SUCCESS;
}

static CUresult copy(const struct sg_work *w, uint32_t add) {
    uint64_t n = param(w, 2);
    uint32_t *to = memory_of(w, 0, n, 4);
    const uint32_t *from = memory_of(w, 1, n, 4);
    if (to == NULL || from == NULL) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    for (uint64_t i = 0; i < n; i++) {
        to[i] = from[i] + add;
    }
    return CUDA_SUCCESS;
}

static CUresult saxpy(const struct sg_work *w) {
    uint64_t n = param(w, 3);
    float *y = memory_of(w, 0, n, 4);
    const float *x = memory_of(w, 1, n, 4);
    if (y == NULL || x == NULL) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    float a = param_f32(w, 2);
    for (uint64_t i = 0; i < n; i++) {
        y[i] = __builtin_fmaf(a, x[i], y[i]);
    }
    return CUDA_SUCCESS;
}

static CUresult checksum(const struct sg_work *w) {
    uint64_t n = param(w, 2);
    uint64_t *out = memory_of(w, 0, 1, 8);
    const uint32_t *from = memory_of(w, 1, n, 4);
    if (out == NULL || from == NULL) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        sum += from[i];
    }
    *out += sum;
    return CUDA_SUCCESS;
}

static CUresult gemm(const struct sg_work *w) {
    uint64_t m = (uint32_t)param(w, 3);
    uint64_t n = (uint32_t)param(w, 4);
    uint64_t k = (uint32_t)param(w, 5);
    float *c = memory_of(w, 0, m * n, 4);
    const float *a = memory_of(w, 1, m * k, 4);
    const float *b = memory_of(w, 2, k * n, 4);
    if (c == NULL || a == NULL || b == NULL) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    for (uint64_t i = 0; i < m; i++) {
        for (uint64_t j = 0; j < n; j++) {
            float sum = 0;
            for (uint64_t l = 0; l < k; l++) {
                sum = __builtin_fmaf(a[i * k + l], b[l * n + j], sum);
            }
            c[i * n + j] = sum;
        }
    }
    return CUDA_SUCCESS;
}

static CUresult busy(const struct sg_work *w) {
    if (param(w, 0) == 0) {
        return CUDA_SUCCESS;
    }
    uint64_t *state = memory_of(w, 0, 1, 8);
    if (state == NULL) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    *state = *state * SG_FOLD + param(w, 3);
    return CUDA_SUCCESS;
}

CUresult sg_run_kernel(const struct sg_work *w) {
    switch (w->kernel.spec->kind) {
    case SG_KIND_FILL:
        return fill(w);
    case SG_KIND_COPY:
        return copy(w, 0);
    case SG_KIND_STREAM:
        return copy(w, 1);
    case SG_KIND_SAXPY:
        return saxpy(w);
    case SG_KIND_CHECKSUM:
        return checksum(w);
    case SG_KIND_GEMM:
        return gemm(w);
    case SG_KIND_BUSY:
        return busy(w);
    case SG_KIND_SPIN:
    case SG_KIND_OPAQUE:
        break;
    }
    return CUDA_SUCCESS;
}
