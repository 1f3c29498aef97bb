/* Launching kernels, in all the forms that the API has had. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"

static pthread_key_t tally_key;
static pthread_once_t tally_once = PTHREAD_ONCE_INIT;

/* At a thread's end its counts go to the process and its line to the next thread. */
static void give_tally(void *p) {
    struct softgpu_tally *t = p;
    if (__atomic_load_n(&sg.initialised, __ATOMIC_ACQUIRE) &&
        __atomic_load_n(&t->proc, __ATOMIC_ACQUIRE) == sg.proc) {
        sg_count(SOFTGPU_COUNT_LAUNCH, t->launches);
        sg_count(SOFTGPU_COUNT_OPAQUE, t->opaque);
        t->launches = 0;
        t->opaque = 0;
        __atomic_store_n(&t->proc, SOFTGPU_NONE, __ATOMIC_RELEASE);
    }
}

static void make_key(void) {
    (void)pthread_key_create(&tally_key, give_tally);
}

static struct softgpu_tally *take_tally(void) {
    pthread_once(&tally_once, make_key);
    struct softgpu_state *st = sg.node.st;
    for (uint32_t i = 0; i < SOFTGPU_MAX_TALLIES; i++) {
        uint32_t nobody = SOFTGPU_NONE;
        if (__atomic_compare_exchange_n(&st->tallies[i].proc, &nobody, sg.proc, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            sg_self.tally = &st->tallies[i];
            (void)pthread_setspecific(tally_key, sg_self.tally);
            return sg_self.tally;
        }
    }
    return NULL;
}

/* Only this thread adds, so this need not be one step; others may look, and take the count at the end
 * of the process. */
static inline void add(uint64_t *count, uint64_t n) {
    __atomic_store_n(count, __atomic_load_n(count, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}

static inline void add_launch(struct softgpu_tally *t, bool opaque) {
    add(&t->launches, 1);
    add(&t->opaque, opaque);
}

static inline void count_launch(bool opaque) {
    struct softgpu_tally *t = sg_self.tally;
    if (__builtin_expect(t == NULL, 0)) {
        t = take_tally();
        if (t == NULL) {
            sg_count(SOFTGPU_COUNT_LAUNCH, 1);
            sg_count(SOFTGPU_COUNT_OPAQUE, opaque);
            return;
        }
    }
    add_launch(t, opaque);
}

static CUresult check_shape(const struct sg_function *f, const struct sg_work *w, int device) {
    const unsigned *g = w->kernel.grid;
    const unsigned *b = w->kernel.block;
    if (g[0] == 0 || g[1] == 0 || g[2] == 0 || b[0] == 0 || b[1] == 0 || b[2] == 0 ||
        g[0] > 2147483647u || g[1] > 65535 || g[2] > 65535 || b[0] > 1024 || b[1] > 1024 ||
        b[2] > 64 || b[0] * b[1] * b[2] > 1024) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    unsigned most =
        f->dynamic_smem_max != 0 ? (unsigned)f->dynamic_smem_max : 49152 - f->spec->smem;
    if (w->kernel.shared > most) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sg_sm_limits limits;
    sg_sm_limits(device, &limits);
    struct sg_footprint fp = {.blocks = 1,
                              .threads = b[0] * b[1] * b[2],
                              .registers = f->spec->registers,
                              .smem = f->spec->smem + w->kernel.shared};
    return fp.threads > f->spec->max_threads || sg_blocks_per_sm(&limits, &fp) == 0
               ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
               : CUDA_SUCCESS;
}

/* From the `extra` list: a buffer laid out as the kernel's parameters are. */
static CUresult params_from_extra(struct sg_work *w, void **extra) {
    const void *buffer = NULL;
    const size_t *size = NULL;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            buffer = extra[1];
        } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
            size = extra[1];
        } else {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    const struct sg_spec *spec = w->kernel.spec;
    if (buffer == NULL || size == NULL || (spec->known_params && *size < spec->param_bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(w->kernel.params, buffer, *size < SG_PARAM_BYTES ? *size : SG_PARAM_BYTES);
    return CUDA_SUCCESS;
}

CUresult sg_kernel_params(struct sg_work *w, void **params, void **extra) {
    const struct sg_spec *spec = w->kernel.spec;
    if (!spec->known_params || spec->param_count == 0) {
        return CUDA_SUCCESS; /* nobody knows how to read them, or there are none */
    }
    if ((params == NULL) == (extra == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    w->kernel.params = calloc(1, extra != NULL ? SG_PARAM_BYTES : spec->param_bytes + 8u);
    if (w->kernel.params == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (extra != NULL) {
        return params_from_extra(w, extra);
    }
    for (uint32_t i = 0; i < spec->param_count; i++) {
        if (params[i] == NULL) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        memcpy(w->kernel.params + spec->param_offset[i], params[i], spec->param_size[i]);
    }
    return CUDA_SUCCESS;
}

/* No effect, no cost, nothing in flight, nothing armed: a count is all there is to a launch, and it
 * is made here. No call may be made from here, so that the callers need no frame. */
static inline bool launched_free(const struct sg_function *f, unsigned gx, unsigned bx) {
    const struct sg_thread *self = &sg_self;
    if (!sg.null_profile || self->depth == 0 || self->tally == NULL || f == NULL || gx == 0 ||
        bx == 0 ||
        (__atomic_load_n(&sg.pending, __ATOMIC_RELAXED) |
         __atomic_load_n(&sg.captures, __ATOMIC_RELAXED)) != 0) {
        return false;
    }
    const struct softgpu_state *st = sg.node.st;
    const struct sg_ctx *ctx = self->stack[self->depth - 1];
    if (ctx->magic != SG_CONTEXT || (f->magic != SG_FUNCTION && f->magic != SG_KERNEL) ||
        (f->spec->kind != SG_KIND_OPAQUE && f->spec->kind != SG_KIND_SPIN) ||
        (__atomic_load_n(&st->header.faults_armed, __ATOMIC_RELAXED) |
         __atomic_load_n(&st->contexts[ctx->slot].error, __ATOMIC_RELAXED)) != 0) {
        return false;
    }
    add_launch(self->tally, f->spec->kind == SG_KIND_OPAQUE);
    return true;
}

static CUresult launch_work(struct sg_ctx *ctx, struct sg_function *f, struct sg_work *w,
                            CUstream h, void **params, void **extra) {
    CUresult rc = check_shape(f, w, ctx->device);
    if (rc == CUDA_SUCCESS) {
        rc = sg_kernel_params(w, params, extra);
    }
    sg_lock();
    struct sg_stream *s = rc == CUDA_SUCCESS ? sg_stream_get(ctx, h) : NULL;
    if (s == NULL) {
        sg_work_free(w);
        rc = rc != CUDA_SUCCESS ? rc : CUDA_ERROR_INVALID_HANDLE;
    } else {
        count_launch(f->spec->kind == SG_KIND_OPAQUE);
        rc = sg_submit(s, w);
    }
    sg_unlock();
    return rc;
}

static __attribute__((noinline)) CUresult launch(const char *entry, CUfunction h,
                                                 const unsigned grid[3], const unsigned block[3],
                                                 unsigned shared, CUstream stream, void **params,
                                                 void **extra) {
    struct sg_ctx *ctx;
    uint64_t began = sg.null_profile ? 0 : sg_monotonic_ns();
    CUresult rc = sg_enter_ctx(entry, &ctx);
    struct sg_function *f;
    if (rc == CUDA_SUCCESS) {
        rc = sg_function_of(h, &f);
    }
    if (rc != CUDA_SUCCESS) {
        return rc;
    }
    struct sg_work *w = sg_work_new(SG_WORK_KERNEL);
    if (w == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    w->kernel.spec = f->spec;
    w->kernel.shared = shared;
    memcpy(w->kernel.grid, grid, sizeof(w->kernel.grid));
    memcpy(w->kernel.block, block, sizeof(w->kernel.block));
    rc = launch_work(ctx, f, w, stream, params, extra);
    if (began != 0) {
        const struct softgpu_header *hd = &sg.node.st->header;
        sg_spin_until(began + (uint64_t)(hd->launch_ns / hd->speed));
    }
    return rc;
}

static __attribute__((noinline)) CUresult launch3(const char *entry, CUfunction f, unsigned gx,
                                                  unsigned gy, unsigned gz, unsigned bx,
                                                  unsigned by, unsigned bz, unsigned shared,
                                                  CUstream h, void **params, void **extra) {
    if (launched_free(f, gx, bx)) {
        return CUDA_SUCCESS;
    }
    unsigned grid[3] = {gx, gy, gz};
    unsigned block[3] = {bx, by, bz};
    return launch(entry, f, grid, block, shared, h, params, extra);
}

/* With the signature of the call itself, so that it is reached by a jump. */
static __attribute__((noinline)) CUresult launch_kernel(CUfunction f, unsigned gx, unsigned gy,
                                                        unsigned gz, unsigned bx, unsigned by,
                                                        unsigned bz, unsigned shared, CUstream h,
                                                        void **params, void **extra) {
    unsigned grid[3] = {gx, gy, gz};
    unsigned block[3] = {bx, by, bz};
    return launch("cuLaunchKernel", f, grid, block, shared, h, params, extra);
}

SG_API(cuLaunchKernel,
       (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
        unsigned shared, CUstream h, void **params, void **extra)) {
    if (__builtin_expect(launched_free(f, gx, bx), 1)) {
        return CUDA_SUCCESS;
    }
    return launch_kernel(f, gx, gy, gz, bx, by, bz, shared, h, params, extra);
}

SG_API(cuLaunchKernel_ptsz,
       (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
        unsigned shared, CUstream h, void **params, void **extra)) {
    if (__builtin_expect(launched_free(f, gx, bx), 1)) {
        return CUDA_SUCCESS;
    }
    return launch_kernel(f, gx, gy, gz, bx, by, bz, shared, SG_PER_THREAD(h), params, extra);
}

/* All blocks of a cooperative launch have to be on the device at once. */
static CUresult fits_at_once(CUfunction h, const unsigned grid[3], const unsigned block[3],
                             unsigned shared) {
    struct sg_ctx *ctx = sg_current();
    struct sg_function *f;
    if (ctx == NULL || sg_function_of(h, &f) != CUDA_SUCCESS) {
        return CUDA_SUCCESS; /* the launch itself says what is wrong */
    }
    struct sg_sm_limits limits;
    sg_sm_limits(ctx->device, &limits);
    struct sg_footprint fp = {.blocks = 1,
                              .threads = block[0] * block[1] * block[2],
                              .registers = f->spec->registers,
                              .smem = f->spec->smem + shared};
    uint64_t room =
        (uint64_t)sg_blocks_per_sm(&limits, &fp) * sg.node.st->contexts[ctx->slot].sm_cap;
    return (uint64_t)grid[0] * grid[1] * grid[2] > room ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
                                                        : CUDA_SUCCESS;
}

SG_TWO_FORMS(cuLaunchCooperativeKernel, _ptsz,
             (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
              unsigned bz, unsigned shared, CUstream h, void **params),
             (f, gx, gy, gz, bx, by, bz, shared, h, params),
             (f, gx, gy, gz, bx, by, bz, shared, SG_PER_THREAD(h), params)) {
    SG_ENTER();
    unsigned grid[3] = {gx, gy, gz};
    unsigned block[3] = {bx, by, bz};
    CUresult rc = fits_at_once(f, grid, block, shared);
    /* Through the export: see cuMemAllocPitch_v2. */
    return rc != CUDA_SUCCESS ? rc
                              : cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, h, params, NULL);
}

static CUresult launch_config(const CUlaunchConfig *c, CUstream h, CUfunction f, void **params,
                              void **extra) {
    if (c->numAttrs != 0 && c->attrs == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    unsigned grid[3] = {c->gridDimX, c->gridDimY, c->gridDimZ};
    unsigned block[3] = {c->blockDimX, c->blockDimY, c->blockDimZ};
    for (unsigned i = 0; i < c->numAttrs; i++) {
        if (c->attrs[i].id == 2 && c->attrs[i].value.cooperative) {
            CUresult rc = fits_at_once(f, grid, block, c->sharedMemBytes);
            if (rc != CUDA_SUCCESS) {
                return rc;
            }
        }
    }
    return launch3("cuLaunchKernelEx", f, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                   c->sharedMemBytes, h, params, extra);
}

SG_API(cuLaunchKernelEx, (const CUlaunchConfig *c, CUfunction f, void **params, void **extra)) {
    return c == NULL ? CUDA_ERROR_INVALID_VALUE : launch_config(c, c->hStream, f, params, extra);
}

SG_API(cuLaunchKernelEx_ptsz,
       (const CUlaunchConfig *c, CUfunction f, void **params, void **extra)) {
    return c == NULL ? CUDA_ERROR_INVALID_VALUE
                     : launch_config(c, SG_PER_THREAD(c->hStream), f, params, extra);
}

/* ---- the calls before CUDA 4: block shape and parameters are state of the function */

SG_API(cuFuncSetBlockShape, (CUfunction h, int x, int y, int z)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    struct sg_function *f;
    CUresult rc = sg_function_of(h, &f);
    if (rc != CUDA_SUCCESS || x <= 0 || y <= 0 || z <= 0) {
        return rc != CUDA_SUCCESS ? rc : CUDA_ERROR_INVALID_VALUE;
    }
    f->block[0] = (unsigned)x;
    f->block[1] = (unsigned)y;
    f->block[2] = (unsigned)z;
    return CUDA_SUCCESS;
}

SG_API(cuFuncSetSharedSize, (CUfunction h, unsigned bytes)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    struct sg_function *f;
    CUresult rc = sg_function_of(h, &f);
    if (rc == CUDA_SUCCESS) {
        f->shared = bytes;
    }
    return rc;
}

SG_API(cuParamSetSize, (CUfunction h, unsigned bytes)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    struct sg_function *f;
    CUresult rc = sg_function_of(h, &f);
    return rc == CUDA_SUCCESS && bytes > SG_PARAM_BYTES ? CUDA_ERROR_INVALID_VALUE : rc;
}

static bool has_params(struct sg_function *f) {
    if (f->params == NULL) {
        f->params = calloc(1, SG_PARAM_BYTES);
    }
    return f->params != NULL;
}

static CUresult set_param(CUfunction h, int offset, const void *from, size_t bytes) {
    struct sg_function *f;
    CUresult rc = sg_function_of(h, &f);
    if (rc != CUDA_SUCCESS) {
        return rc;
    }
    if (offset < 0 || bytes > SG_PARAM_BYTES || (size_t)offset > SG_PARAM_BYTES - bytes) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!has_params(f)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(f->params + offset, from, bytes);
    return CUDA_SUCCESS;
}

SG_API(cuParamSeti, (CUfunction f, int offset, unsigned value)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    return set_param(f, offset, &value, sizeof(value));
}

SG_API(cuParamSetf, (CUfunction f, int offset, float value)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    return set_param(f, offset, &value, sizeof(value));
}

SG_API(cuParamSetv, (CUfunction f, int offset, void *value, unsigned bytes)) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    return value == NULL ? CUDA_ERROR_INVALID_VALUE : set_param(f, offset, value, bytes);
}

static CUresult launch_old(const char *entry, CUfunction h, int width, int height, CUstream s) {
    struct sg_function *f;
    CUresult rc = sg_function_of(h, &f);
    if (rc != CUDA_SUCCESS || width <= 0 || height <= 0) {
        return rc != CUDA_SUCCESS ? rc : CUDA_ERROR_INVALID_VALUE;
    }
    if (!has_params(f)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    size_t size = SG_PARAM_BYTES;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, f->params, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    return launch3(entry, f, (unsigned)width, (unsigned)height, 1, f->block[0], f->block[1],
                   f->block[2], f->shared, s, NULL, extra);
}

SG_API(cuLaunch, (CUfunction f)) {
    return launch_old(__func__, f, 1, 1, NULL);
}

SG_API(cuLaunchGrid, (CUfunction f, int width, int height)) {
    return launch_old(__func__, f, width, height, NULL);
}

SG_API(cuLaunchGridAsync, (CUfunction f, int width, int height, CUstream h)) {
    return launch_old(__func__, f, width, height, h);
}
