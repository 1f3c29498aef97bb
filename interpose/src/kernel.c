#include "kernel.h"

#include <pthread.h>
#include <string.h>

#include "capture.h"
#include "device.h"
#include "driver.h"
#include "heddle/profile.h"
#include "resolve.h"
#include "symbols.h"
#include "tell.h"

enum { ENTRIES = 4096, PROBES = 16, NODES_MAX = 1024 };

/* Measured launches after which older ones are forgotten, and as many as are wanted at first. */
enum { BLOCK = 8, FIRST = 3 };

static const uint64_t tomb = UINT64_MAX;

typedef heddle_result (*get_name)(const char **, void *);
typedef heddle_result (*get_attribute)(int *, int, void *);
typedef heddle_result (*get_kernel_attribute)(int *, int, void *, heddle_device);
typedef heddle_result (*get_blocks)(int *, void *, int, size_t);
typedef heddle_result (*get_nodes)(void *, void **, size_t *);
typedef heddle_result (*get_type)(void *, int *);
typedef heddle_result (*get_params)(void *, struct heddle_kernel_node *);

/* What is known of a handle. The key is stored last; a reader looks at it again afterwards. */
struct known {
    uint64_t handle;  /* 0 = free, tomb = was used */
    uint64_t name;    /* hash, 0 = has none */
    uint64_t library; /* of a CUkernel, which answers to functions of its own: where it is from */
    uint64_t first;   /* of a graph: the handle of its first kernel */
    uint64_t nodes;   /* of a graph */
};

static struct known table[ENTRIES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards adding and forgetting */

/* Keys that were described, and how they were measured. Never forgotten; full is full. */
static struct {
    uint64_t key;
    uint64_t measured;
    uint32_t traced;    /* number of the last timeline for which it was described */
    uint64_t took;      /* how many of them are known */
    uint64_t least_ns;  /* of the present block of them, 0 = it has none */
    uint64_t before_ns; /* of the block before */
} keys[ENTRIES];

static uint32_t place(uint64_t handle) {
    return (uint32_t)((handle * 0x9e3779b97f4a7c15U) >> 52);
}

static bool find(uint64_t handle, struct known *out) {
    for (uint32_t i = 0; i < PROBES; i++) {
        const struct known *entry = &table[(place(handle) + i) % ENTRIES];
        const uint64_t found = heddle_load_acquire64(&entry->handle);

        if (found == 0) {
            return false;
        }
        if (found == handle) {
            out->handle = handle;
            out->name = heddle_load_acquire64(&entry->name);
            out->library = heddle_load_acquire64(&entry->library);
            out->first = heddle_load_acquire64(&entry->first);
            out->nodes = heddle_load_acquire64(&entry->nodes);
            return heddle_load_relaxed64(&entry->handle) == handle;
        }
    }
    return false;
}

/* Without a place the handle stays unknown, and is asked about each time. */
static void put(const struct known *known) {
    struct known *entry = NULL;

    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < PROBES; i++) {
        struct known *candidate = &table[(place(known->handle) + i) % ENTRIES];

        if (candidate->handle == known->handle) {
            entry = candidate;
            break;
        }
        if (entry == NULL && (candidate->handle == 0 || candidate->handle == tomb)) {
            entry = candidate;
        }
        if (candidate->handle == 0) {
            break;
        }
    }
    if (entry != NULL) {
        (void)heddle_swap_seq_cst64(&entry->handle, tomb);
        heddle_store_relaxed64(&entry->name, known->name);
        heddle_store_relaxed64(&entry->library, known->library);
        heddle_store_relaxed64(&entry->first, known->first);
        heddle_store_relaxed64(&entry->nodes, known->nodes);
        heddle_store_release64(&entry->handle, known->handle);
    }
    pthread_mutex_unlock(&lock);
}

static const char *name_of(uint64_t handle, bool library) {
    const enum heddle_symbol_index index =
        library ? HEDDLE_SYM_cuKernelGetName : HEDDLE_SYM_cuFuncGetName;
    const char *name = NULL;

    if (!heddle_resolve_has(index) ||
        ((get_name)heddle_real[index])(&name, (void *)(uintptr_t)handle) != HEDDLE_CUDA_SUCCESS) {
        return NULL;
    }
    return name;
}

static void learn(uint64_t handle, uint64_t library, struct known *out) {
    const char *name = name_of(handle, library != 0);

    *out = (struct known){.handle = handle, .library = library};
    if (name != NULL) {
        out->name = heddle_profile_name(name, strlen(name));
    }
    put(out);
}

void heddle_kernel_from(const void *kernel, const void *library) {
    struct known unused;

    learn((uint64_t)(uintptr_t)kernel, (uint64_t)(uintptr_t)library, &unused);
}

/* A graph that is not known was made before the interposer looked, or in a way that it does not see. */
static bool identify(const struct heddle_shape *shape, struct known *out) {
    if (shape->function == 0) {
        return false;
    }
    if (!find(shape->function, out)) {
        if ((shape->shared & HEDDLE_SHAPE_GRAPH) != 0) {
            return false;
        }
        learn(shape->function, 0, out);
    }
    return out->name != 0;
}

static void dimensions(const struct heddle_shape *shape, uint32_t grid[3], uint32_t block[3]) {
    grid[0] = (uint32_t)shape->words[0];
    grid[1] = (uint32_t)(shape->words[0] >> 32);
    grid[2] = (uint32_t)shape->words[1];
    block[0] = (uint32_t)(shape->words[1] >> 32);
    block[1] = (uint32_t)shape->words[2];
    block[2] = (uint32_t)(shape->words[2] >> 32);
}

uint64_t heddle_kernel_key(const struct heddle_shape *shape) {
    struct known known;
    uint32_t grid[3];
    uint32_t block[3];

    if (!identify(shape, &known)) {
        return 0;
    }
    dimensions(shape, grid, block);
    return heddle_profile_key(known.name, grid, block, (uint32_t)shape->shared);
}

static uint32_t attribute(int which, const struct known *known) {
    void *function = (void *)(uintptr_t)known->handle;
    const int32_t device = heddle_device_current();
    heddle_result result = HEDDLE_CUDA_NOT_SUPPORTED;
    int value = 0;

    if (known->library == 0) {
        result = HEDDLE_DRIVER(get_attribute, cuFuncGetAttribute)(&value, which, function);
    } else if (device != HEDDLE_DEVICE_NONE) {
        result = HEDDLE_DRIVER(get_kernel_attribute, cuKernelGetAttribute)(
            &value, which, function, heddle_device_ordinal((uint32_t)device));
    }
    return result == HEDDLE_CUDA_SUCCESS && value > 0 ? (uint32_t)value : 0;
}

static void ask_needs(struct heddle_kernel_record *record, const struct known *known) {
    const uint64_t threads = (uint64_t)record->block[0] * record->block[1] * record->block[2];
    int blocks = 0;

    record->threads_max = attribute(HEDDLE_FUNCTION_MAX_THREADS, known);
    record->static_shared = attribute(HEDDLE_FUNCTION_SHARED, known);
    record->registers = attribute(HEDDLE_FUNCTION_REGISTERS, known);
    if (record->threads_max != 0) {
        record->flags |= HEDDLE_KERNEL_ATTRIBUTES;
    }
    if (threads != 0 && threads <= record->threads_max &&
        HEDDLE_DRIVER(get_blocks, cuOccupancyMaxActiveBlocksPerMultiprocessor)(
            &blocks, (void *)(uintptr_t)known->handle, (int)threads, record->dynamic_shared) ==
            HEDDLE_CUDA_SUCCESS &&
        blocks > 0) {
        record->blocks_per_sm = (uint32_t)blocks;
    }
}

static void describe(uint64_t key, const struct heddle_shape *shape) {
    struct heddle_kernel_record record = {.key = key};
    struct known known;
    struct known first;
    const char *name = NULL;
    size_t length = 0;

    if (!identify(shape, &known)) {
        return;
    }
    dimensions(shape, record.grid, record.block);
    record.dynamic_shared = (uint32_t)shape->shared;
    if ((shape->shared & HEDDLE_SHAPE_GRAPH) != 0) {
        record.flags = HEDDLE_KERNEL_GRAPH;
        record.grid[0] = (uint32_t)(known.nodes - 1);
        if (known.first != 0 && find(known.first, &first)) {
            name = name_of(first.handle, first.library != 0);
        }
    } else {
        name = name_of(known.handle, known.library != 0);
        ask_needs(&record, &known);
    }
    length = name != NULL ? strlen(name) : 0;
    if (length > HEDDLE_KERNEL_NAME) {
        length = HEDDLE_KERNEL_NAME;
        record.flags |= HEDDLE_KERNEL_CUT;
    }
    record.length = (uint32_t)length;
    if (length != 0) {
        memcpy(record.name, name, length);
    }
    heddle_tell_kernel(&record);
}

/* The place of a key's count, taken now if it has none; ENTRIES if there is no room. */
static uint32_t count_of(uint64_t key, bool *fresh) {
    *fresh = false;
    for (uint32_t i = 0; i < PROBES; i++) {
        const uint32_t at = (uint32_t)((key >> 52) + i) % ENTRIES;
        uint64_t expected = heddle_load_acquire64(&keys[at].key);

        if (expected == 0 && heddle_cas_seq_cst64(&keys[at].key, &expected, key)) {
            *fresh = true;
            return at;
        }
        if (expected == key) {
            return at;
        }
    }
    return ENTRIES;
}

void heddle_kernel_measured(uint64_t key, const struct heddle_shape *shape) {
    bool fresh = false;
    const uint32_t at = key != 0 ? count_of(key, &fresh) : ENTRIES;

    if (at != ENTRIES) {
        const uint64_t count = heddle_add_seq_cst64(&keys[at].measured, 1);

        if (fresh || (count > 1 && (count & (count - 1)) == 0)) {
            describe(key, shape);
        }
    }
}

void heddle_kernel_traced(uint64_t key, const struct heddle_shape *shape, uint32_t number) {
    bool fresh = false;
    const uint32_t at = key != 0 ? count_of(key, &fresh) : ENTRIES;

    if (at != ENTRIES && heddle_load_relaxed32(&keys[at].traced) != number &&
        heddle_swap_seq_cst32(&keys[at].traced, number) != number) {
        const int mode = heddle_capture_exchange(HEDDLE_CAPTURE_MODE_RELAXED);

        describe(key, shape);
        (void)heddle_capture_exchange(mode);
    }
}

/* Two threads may change it at once; then one of two times counts, and both are true. */
void heddle_kernel_took(uint64_t key, uint64_t device_ns) {
    bool fresh = false;
    const uint32_t at = key != 0 ? count_of(key, &fresh) : ENTRIES;
    const uint64_t ns = device_ns != 0 ? device_ns : 1;

    if (at == ENTRIES) {
        return;
    }
    if (heddle_add_seq_cst64(&keys[at].took, 1) % BLOCK == 0) {
        heddle_store_relaxed64(&keys[at].before_ns, heddle_load_relaxed64(&keys[at].least_ns));
        heddle_store_relaxed64(&keys[at].least_ns, ns);
    } else if (heddle_load_relaxed64(&keys[at].least_ns) - 1 >= ns) { /* also of none */
        heddle_store_relaxed64(&keys[at].least_ns, ns);
    }
}

/* The place of a key that was counted before, ENTRIES if it was not. */
static uint32_t counted(uint64_t key) {
    for (uint32_t i = 0; key != 0 && i < PROBES; i++) {
        const uint32_t at = (uint32_t)((key >> 52) + i) % ENTRIES;
        const uint64_t found = heddle_load_acquire64(&keys[at].key);

        if (found == key) {
            return at;
        }
        if (found == 0) {
            break;
        }
    }
    return ENTRIES;
}

uint64_t heddle_kernel_proven(uint64_t key) {
    const uint32_t at = counted(key);
    uint64_t least = 0;
    uint64_t before = 0;

    if (at == ENTRIES) {
        return 0;
    }
    least = heddle_load_relaxed64(&keys[at].least_ns);
    before = heddle_load_relaxed64(&keys[at].before_ns);
    return before != 0 && before < least ? before : least;
}

bool heddle_kernel_unproven(uint64_t key) {
    const uint32_t at = counted(key);

    return key != 0 && (at == ENTRIES || heddle_load_relaxed64(&keys[at].took) < FIRST);
}

/*
 * A graph's key must be the same in every process that builds it: the count of its nodes, and the names
 * and shapes of its kernels in the order in which the driver lists them. Of a graph with very many
 * nodes only the count is taken, and of a driver that does not tell kernels, too.
 */
void heddle_kernel_graph(const void *exec, void *graph) {
    void *nodes[NODES_MAX];
    struct known known = {.handle = (uint64_t)(uintptr_t)exec};
    size_t count = 0;

    if (!heddle_resolve_has(HEDDLE_SYM_cuGraphGetNodes) ||
        HEDDLE_DRIVER(get_nodes, cuGraphGetNodes)(graph, NULL, &count) != HEDDLE_CUDA_SUCCESS) {
        return;
    }
    known.nodes = count + 1; /* above 0 even of an empty one */
    known.name = heddle_profile_mix(1, count);
    if (count > NODES_MAX || !heddle_resolve_has(HEDDLE_SYM_cuGraphKernelNodeGetParams_v2) ||
        HEDDLE_DRIVER(get_nodes, cuGraphGetNodes)(graph, nodes, &count) != HEDDLE_CUDA_SUCCESS) {
        count = 0;
    }
    for (size_t i = 0; i < count; i++) {
        struct heddle_kernel_node params = {0};
        struct heddle_shape shape;
        int type = 0;

        if (HEDDLE_DRIVER(get_type, cuGraphNodeGetType)(nodes[i], &type) != HEDDLE_CUDA_SUCCESS ||
            type != HEDDLE_GRAPH_NODE_KERNEL ||
            HEDDLE_DRIVER(get_params, cuGraphKernelNodeGetParams_v2)(nodes[i], &params) !=
                HEDDLE_CUDA_SUCCESS) {
            continue;
        }
        shape = heddle_shape_of(params.function != NULL ? params.function : params.kernel,
                                params.grid[0], params.grid[1], params.grid[2], params.block[0],
                                params.block[1], params.block[2], params.shared_bytes);
        known.name = heddle_profile_mix(known.name, heddle_kernel_key(&shape));
        known.first = known.first == 0 ? shape.function : known.first;
    }
    known.name = known.name != 0 ? known.name : 1;
    put(&known);
}

/* Functions have no library; those that a library's kernels gave go with it, too. Graphs stay. */
void heddle_kernel_forget(const void *library) {
    const uint64_t gone = (uint64_t)(uintptr_t)library;

    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < ENTRIES; i++) {
        struct known *entry = &table[i];

        if (entry->handle != 0 && entry->nodes == 0 &&
            (entry->library == 0 || entry->library == gone)) {
            heddle_store_release64(&entry->handle, tomb);
        }
    }
    pthread_mutex_unlock(&lock);
}

void heddle_kernel_forget_graph(const void *exec) {
    const uint64_t gone = (uint64_t)(uintptr_t)exec;

    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; gone != 0 && i < PROBES; i++) {
        struct known *entry = &table[(place(gone) + i) % ENTRIES];

        if (entry->handle == gone) {
            heddle_store_release64(&entry->handle, tomb);
        }
    }
    pthread_mutex_unlock(&lock);
}

void heddle_kernel_reset(void) {
    pthread_mutex_init(&lock, NULL);
    memset(table, 0, sizeof(table));
    memset(keys, 0, sizeof(keys));
}
