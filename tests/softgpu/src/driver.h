/* What the parts of the software driver know of each other.
 *
 * Locks, in this order: `sg.mutex` (all private state of the process), then the state file's lock
 * (sg_state_lock). Effects on memory run under sg.mutex only; host functions under none.
 */
#ifndef SOFTGPU_DRIVER_H
#define SOFTGPU_DRIVER_H

#include <pthread.h>
#include <stdbool.h>

#include "model.h"
#include "sgcuda.h"
#include "state.h"

/* First word of every object that a handle points to. Objects are never given back to the C
 * library, so that a stale handle finds a dead one. */
enum sg_magic {
    SG_DEAD = 0,
    SG_CONTEXT = 0x43545831,
    SG_STREAM,
    SG_EVENT,
    SG_MODULE,
    SG_LIBRARY,
    SG_FUNCTION,
    SG_KERNEL,
    SG_GRAPH,
    SG_NODE,
    SG_EXEC,
    SG_ARRAY,
    SG_POOL
};

enum sg_kind {
    SG_KIND_OPAQUE,
    SG_KIND_FILL,
    SG_KIND_COPY,
    SG_KIND_SAXPY,
    SG_KIND_CHECKSUM,
    SG_KIND_SPIN,
    SG_KIND_STREAM,
    SG_KIND_GEMM,
    SG_KIND_BUSY
};

/* As cuDriverGetVersion answers. The build of an older driver sets its own. */
#ifndef SG_DRIVER_VERSION
#define SG_DRIVER_VERSION 13030
#endif

enum { SG_MAX_PARAMS = 64, SG_PARAM_BYTES = 4096 };

/* A kernel as its module describes it. */
struct sg_spec {
    char *name;
    enum sg_kind kind;
    double time_ns;     /* below 0: by size, from bytes moved or operations done */
    int32_t time_param; /* index of a u64 parameter with the time, or -1 */
    double dram;
    uint32_t registers;
    uint32_t smem; /* static */
    uint32_t max_threads;
    uint32_t param_count;
    uint32_t param_bytes;
    uint32_t param_offset[SG_MAX_PARAMS];
    uint32_t param_size[SG_MAX_PARAMS];
    bool known_params; /* false for opaque images: parameters are not read */
};

struct sg_function {
    uint32_t magic; /* SG_FUNCTION or SG_KERNEL */
    struct sg_spec *spec;
    struct sg_module *module;
    struct sg_function *twin; /* kernel: its function; function of a library: its kernel */
    int dynamic_smem_max;
    int carveout;
    unsigned block[3]; /* of the old launch calls */
    unsigned shared;
    unsigned char *params; /* of the old launch calls; made at their first use */
};

struct sg_global {
    char *name;
    uint64_t size;
    CUdeviceptr address;
};

struct sg_module {
    uint32_t magic;     /* SG_MODULE or SG_LIBRARY */
    struct sg_ctx *ctx; /* NULL for a library */
    struct sg_function **functions;
    uint32_t function_count;
    bool opaque; /* not PTX: any name that is asked for exists */
    struct sg_global *globals;
    uint32_t global_count;
    struct sg_module *owner; /* module of a library */
    struct sg_module *as_module;
};

/* One thing that a stream does. Kept in the owner, in stream order, until it is done. */
enum sg_work_kind {
    SG_WORK_NOTHING,
    SG_WORK_KERNEL,
    SG_WORK_COPY,
    SG_WORK_SET,
    SG_WORK_EVENT,
    SG_WORK_HOST,
    SG_WORK_CALLBACK,
    SG_WORK_WRITE,
    SG_WORK_WAIT_VALUE,
    SG_WORK_WAIT_EVENT,
    SG_WORK_FREE
};

struct sg_plane {
    unsigned char *base;
    size_t pitch;
    size_t slice; /* bytes from one layer to the next */
};

struct sg_work {
    struct sg_work *next;
    enum sg_work_kind kind;
    uint64_t pos;
    uint64_t ticket; /* order of submission in this process */
    uint32_t op;     /* its operation in the state file, for a HOST's answer */
    bool asked;
    union {
        struct {
            struct sg_spec *spec;
            unsigned grid[3];
            unsigned block[3];
            unsigned shared;
            unsigned char *params; /* allocated, or NULL */
        } kernel;
        struct {
            struct sg_plane to, from;
            size_t width, height, depth;
            void *staged; /* allocated copy of pageable memory, or NULL */
            int queue;
        } copy;
        struct {
            struct sg_plane to;
            size_t width, height;
            uint32_t value;
            uint32_t size;
        } set;
        struct {
            struct sg_event *event;
            uint64_t record;
        } event;
        struct {
            CUhostFn fn;
            CUstreamCallback callback;
            void *user;
        } host;
        struct {
            void *address;
            uint64_t value;
            unsigned flags;
            bool wide;
        } value;
        struct {
            uint32_t stream;
            uint64_t generation;
            uint64_t pos;
            struct sg_event *event;
        } wait;
        CUdeviceptr address;
    };
};

/* Nodes that the next one of a capturing stream depends on. */
struct sg_tips {
    struct sg_node_s **nodes;
    uint32_t count;
};

struct sg_stream {
    uint32_t magic;
    struct sg_ctx *ctx;
    uint32_t slot; /* in the state file */
    uint32_t flags;
    int priority;
    uint64_t id;
    uint64_t submitted; /* atomic: position of the youngest work in the state file */
    uint64_t settled;   /* atomic: effects up to here are applied */
    struct sg_work *first;
    struct sg_work *last;
    struct sg_capture *capture;
    struct sg_tips tips;
    struct sg_stream *next; /* in its context */
    bool zombie;            /* destroyed with work left */
    int64_t done_ns;        /* of the last settled work */
};

struct sg_event {
    uint32_t magic;
    struct sg_ctx *ctx;
    unsigned flags;
    uint64_t record; /* +1 per cuEventRecord */
    bool recorded;
    uint32_t done; /* atomic: the youngest record is over */
    int64_t time_ns;
    struct sg_stream *stream; /* of the youngest record */
    uint32_t stream_slot;
    uint64_t stream_generation;
    uint64_t pos;
    struct sg_capture *capture; /* recorded in a capture */
    struct sg_tips tips;
};

struct sg_ctx {
    uint32_t magic;
    uint32_t slot;
    uint32_t unit;
    int device;
    unsigned flags;
    unsigned version;
    uint64_t id;
    bool primary;
    int references;
    size_t limits[16];
    int cache_config;
    struct sg_stream *legacy;
    struct sg_stream *streams;
    struct sg_ctx *next;
};

enum { SG_CTX_DEPTH = 64 };

/* Per thread. */
struct sg_thread {
    struct sg_ctx *stack[SG_CTX_DEPTH];
    int depth;
    int capture_mode; /* cuThreadExchangeStreamCaptureMode */
    struct softgpu_tally *tally;
    struct sg_stream *own[8]; /* per-thread default streams, one per context */
    bool in_callback;
};

struct sg_driver {
    /* What a launch without costs looks at; hardly ever written. */
    struct sg_node node; /* node.st is NULL until cuInit */
    uint32_t proc;
    uint32_t initialised; /* atomic */
    uint32_t null_profile;
    uint32_t captures; /* atomic: captures in progress */
    uint32_t pending;  /* atomic: works that are in the state file */
    _Alignas(64) pthread_mutex_t mutex;
    pthread_cond_t work;                 /* for the progress thread */
    int visible[SOFTGPU_MAX_DEVICES];    /* ordinal → device */
    uint32_t units[SOFTGPU_MAX_DEVICES]; /* ordinal → what its work runs on */
    int device_count;
    struct sg_ctx *primary[SOFTGPU_MAX_DEVICES];
    unsigned primary_flags[SOFTGPU_MAX_DEVICES];
    struct sg_ctx *contexts;
    uint64_t next_id;
    uint64_t ticket; /* of the youngest work */
    uint32_t prompt; /* pending works that somebody outside may be looking at */
    bool progress_started;
    bool progress_asleep;
    uint32_t stopping; /* atomic: the process is ending */
};

/* Hidden: reached without a table, also from other files. */
extern struct sg_driver sg __attribute__((visibility("hidden")));
extern __thread struct sg_thread sg_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* ---- entry (enter.c) */
CUresult sg_enter(const char *entry);
CUresult sg_enter_ctx(const char *entry, struct sg_ctx **ctx);
CUresult sg_fault(const char *entry);
bool sg_leaving(void); /* leave.c */
void sg_count(enum softgpu_counter c, uint64_t n);
struct sg_ctx *sg_current(void);
CUresult sg_ctx_error(const struct sg_ctx *ctx);
void sg_poison(struct sg_ctx *ctx, CUresult error);
void sg_lock(void);
void sg_unlock(void);
void sg_spin_until(uint64_t real_ns);

#define SG_ENTER()                                                                                 \
    do {                                                                                           \
        CUresult sg_rc_ = sg_enter(__func__);                                                      \
        if (sg_rc_ != CUDA_SUCCESS) {                                                              \
            return sg_rc_;                                                                         \
        }                                                                                          \
    } while (0)

/* Declares `ctx`, the current context, or returns the error. */
#define SG_ENTER_CTX(ctx)                                                                          \
    struct sg_ctx *ctx;                                                                            \
    do {                                                                                           \
        CUresult sg_rc_ = sg_enter_ctx(__func__, &ctx);                                            \
        if (sg_rc_ != CUDA_SUCCESS) {                                                              \
            return sg_rc_;                                                                         \
        }                                                                                          \
    } while (0)

/* Name of an entry without what the two forms below add. */
#define SG_PER_THREAD(h) ((h) == NULL ? CU_STREAM_PER_THREAD : (h))

/* Defines `name` and its per-thread form `name ## suffix`, both through the static function
 * do_`name`: the second sees the per-thread stream where the first sees the legacy one. */
#define SG_TWO_FORMS(name, suffix, params, args, args_per_thread)                                  \
    static CUresult do_##name params;                                                              \
    SG_API(name, params) {                                                                         \
        return do_##name args;                                                                     \
    }                                                                                              \
    SG_API(name##suffix, params) {                                                                 \
        return do_##name args_per_thread;                                                          \
    }                                                                                              \
    static CUresult do_##name params

/* ---- objects (objects.c): memory that is never given back */
void *sg_object(size_t size, uint32_t magic);

/* ---- visible devices (visible.c); the state is locked */
void sg_find_visible(void);
/* Enters what the process sees as used by it. */
void sg_hold_visible(struct softgpu_proc *p);

/* ---- devices (device.c) */
const struct softgpu_model *sg_model(int device);
struct softgpu_device *sg_device(int device);
struct softgpu_unit *sg_unit(int device);
uint32_t sg_unit_index(int device);
/* The MIG device that it is, or NULL for a GPU. */
const struct softgpu_mig_compute *sg_mig_of(int device);
bool sg_device_ok(int device);
void sg_sm_limits(int device, struct sg_sm_limits *out);

/* ---- contexts (context.c) */
struct sg_ctx *sg_ctx_make(int device, unsigned flags, unsigned version, CUresult *rc);
CUresult sg_ctx_close(struct sg_ctx *ctx);
bool sg_ctx_valid(const struct sg_ctx *ctx);
int sg_ctx_device(const struct sg_ctx *ctx);

/* ---- streams (stream.c) */
struct sg_stream *sg_stream_get(struct sg_ctx *ctx, CUstream h);
struct sg_stream *sg_stream_make(struct sg_ctx *ctx, uint32_t flags, int priority);
void sg_stream_release(struct sg_stream *s);

/* ---- work (submit.c, settle.c, wait.c, progress.c); sg.mutex is held, but for sg_wait_* */
struct sg_work *sg_work_new(enum sg_work_kind kind);
void sg_work_free(struct sg_work *w);
/* Takes w over, whatever the answer. */
CUresult sg_submit(struct sg_stream *s, struct sg_work *w);
/* Moves the model to now and applies the effects of everything of ours that is done. */
void sg_settle(void);
void sg_apply(struct sg_stream *s, struct sg_work *w, int64_t end_ns);
/* Forgets what is left in the stream. */
void sg_drop_stream(struct sg_stream *s);
bool sg_stream_idle(const struct sg_stream *s);
CUresult sg_wait_stream(struct sg_stream *s);
CUresult sg_wait_event(struct sg_event *ev);
CUresult sg_wait_ctx(struct sg_ctx *ctx);
/* Sleeps until simulated time `until`, or our wake word leaves `seen`; at most a few ms. */
void sg_nap(uint32_t seen, int64_t until);
uint32_t sg_wake_word(void);
void sg_progress_poke(bool prompt);
bool sg_is_host_work(const struct sg_work *w);
bool sg_is_prompt(const struct sg_work *w);
bool sg_value_reached(const struct sg_work *w);

/* ---- effects (effect.c, kernel.c); CUDA_ERROR_ILLEGAL_ADDRESS if they leave the memory */
CUresult sg_run_copy(const struct sg_work *w);
CUresult sg_run_set(const struct sg_work *w);
CUresult sg_run_kernel(const struct sg_work *w);

/* ---- capture (capture.c); sg.mutex is held, but for sg_capture_unsafe */
/* A call that a capture in global or thread-local mode forbids; invalidates it. */
CUresult sg_capture_unsafe(void);
CUresult sg_capture_work(struct sg_stream *s, struct sg_work *w);
CUresult sg_capture_record(struct sg_stream *s, struct sg_event *ev);
CUresult sg_capture_wait(struct sg_stream *s, struct sg_event *ev);
/* A waiting or asking call on this stream: refused while it captures. */
CUresult sg_capture_refuse(struct sg_stream *s);
/* Work in the legacy stream would have to wait for a stream that captures. */
CUresult sg_capture_implicit(const struct sg_stream *s);

/* ---- graphs (graph.c, node.c); sg.mutex is held */
struct sg_node_s {
    uint32_t magic;
    int type; /* CUgraphNodeType */
    struct sg_graph *graph;
    struct sg_work *work; /* template; NULL for an empty node */
    struct sg_tips needs;
    struct sg_node_s *clone_of;
    bool seen; /* scratch of a walk */
    bool disabled;
    void **params; /* as cuGraphKernelNodeGetParams answers */
    struct sg_function *function;
};

struct sg_graph {
    uint32_t magic;
    struct sg_tips nodes; /* in order of creation */
    uint64_t id;
};

struct sg_graph *sg_graph_new(void);
/* With its locking; takes w over. */
CUresult sg_graph_add(CUgraphNode *out, CUgraph g, const CUgraphNode *needs, size_t count, int type,
                      struct sg_work *w);
/* A kernel's work from a node's parameters. */
CUresult sg_kernel_work(const CUDA_KERNEL_NODE_PARAMS *p, CUfunction h, struct sg_work **out);
/* A copy's work from the structure; NULL if it describes none. */
struct sg_work *sg_copy_work(const CUDA_MEMCPY3D *c);
struct sg_node_s *sg_node_add(struct sg_graph *g, int type, struct sg_work *w,
                              struct sg_node_s *const *needs, size_t count);
bool sg_tips_add(struct sg_tips *t, struct sg_node_s *n);
bool sg_tips_copy(struct sg_tips *to, const struct sg_tips *from);
void sg_tips_clear(struct sg_tips *t);
struct sg_work *sg_work_clone(const struct sg_work *w);

/* ---- memory (memory.c, va.c) */
enum sg_mem_type {
    SG_MEM_DEVICE,
    SG_MEM_MANAGED,
    SG_MEM_HOST,
    SG_MEM_REGISTERED,
    SG_MEM_MAPPED,
    SG_MEM_RESERVED,
    SG_MEM_ASYNC
};
struct sg_block {
    uintptr_t base;
    size_t size;
    size_t span; /* of address space */
    enum sg_mem_type type;
    struct sg_ctx *ctx;
    uint32_t unit;
    unsigned flags;
    uint64_t id;
    uint64_t handle; /* SG_MEM_MAPPED: what is mapped */
    struct sg_pool *pool;
    bool freed; /* SG_MEM_ASYNC: free is queued */
    bool access;
};
struct sg_block *sg_block_find(uintptr_t address);
struct sg_block *sg_block_add(const struct sg_block *b);
void sg_block_remove(struct sg_block *b);
bool sg_range_ok(const void *p, size_t size);
void *sg_va_take(size_t size);
void sg_va_give(void *p, size_t size);
CUresult sg_charge(uint32_t unit, uint64_t bytes);
void sg_discharge(uint32_t unit, uint64_t bytes);
CUresult sg_alloc(struct sg_ctx *ctx, size_t size, enum sg_mem_type type, unsigned flags,
                  CUdeviceptr *out);
CUresult sg_free(CUdeviceptr p);
void sg_free_ctx(struct sg_ctx *ctx);
bool sg_is_pinned(const void *p);
void sg_memory_forget(void); /* after a fork */

/* ---- arrays (array.c) */
struct sg_array {
    uint32_t magic;
    CUdeviceptr base;
    size_t pitch; /* bytes per row */
    CUDA_ARRAY3D_DESCRIPTOR desc;
    size_t element; /* bytes */
};

/* ---- copies (memcpy.c) */
/* A copy on a stream; waits for it unless `async`. Takes the locks itself. */
CUresult sg_copy(struct sg_ctx *ctx, CUstream h, const struct sg_plane *to,
                 const struct sg_plane *from, size_t width, size_t height, size_t depth,
                 bool async);

/* ---- modules (module.c, ptx.c) */
CUresult sg_module_parse(struct sg_module *m, const void *image);
CUresult sg_function_of(CUfunction h, struct sg_function **out);
struct sg_function *sg_module_function(struct sg_module *m, const char *name);
struct sg_function *sg_module_add(struct sg_module *m, const char *name, size_t len);
void sg_module_close(struct sg_module *m);
bool sg_ptx_parse(struct sg_module *m, const char *text);

/* Exports that others here call by name. */
CUresult cuKernelGetFunction(CUfunction *out, CUkernel kernel);
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, CUstream h, void **params,
                        void **extra);

/* ---- launches (launch.c, kernel.c) */
double sg_kernel_ns(const struct sg_work *w, int device);
CUresult sg_kernel_params(struct sg_work *w, void **params, void **extra);
uint64_t sg_param_u64(const struct sg_work *w, uint32_t i);

#endif /* SOFTGPU_DRIVER_H */
