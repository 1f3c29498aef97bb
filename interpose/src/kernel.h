/*
 * Which kernel a launch is: its key, and what it stands for.
 *
 * A handle's name is asked once. Handles are addresses that a driver uses again, so what is known of
 * them is forgotten when any module, library or executable graph goes away.
 */
#ifndef HEDDLE_KERNEL_H
#define HEDDLE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/abi.h"
#include "heddle/atomic.h"

/*
 * What is launched, in words that are stored and read one by one: of two threads that launch on one
 * stream the last one's shape may be a mixture, which is the shape of no kernel that is known.
 */
struct heddle_shape {
    uint64_t function; /* CUfunction, CUkernel or CUgraphExec; 0 = nothing known */
    uint64_t words[3]; /* grid x, y; grid z, block x; block y, z */
    uint64_t shared;   /* dynamic shared memory, and HEDDLE_SHAPE_GRAPH */
};

#define HEDDLE_SHAPE_GRAPH ((uint64_t)1 << 32)

static inline struct heddle_shape heddle_shape_of(const void *function, unsigned gx, unsigned gy,
                                                  unsigned gz, unsigned bx, unsigned by,
                                                  unsigned bz, unsigned shared) {
    return (struct heddle_shape){
        .function = (uint64_t)(uintptr_t)function,
        .words = {(uint64_t)gy << 32 | gx, (uint64_t)bx << 32 | gz, (uint64_t)bz << 32 | by},
        .shared = shared};
}

static inline void heddle_shape_store(struct heddle_shape *to, const struct heddle_shape *from) {
    heddle_store_relaxed64(&to->function, from->function);
    heddle_store_relaxed64(&to->words[0], from->words[0]);
    heddle_store_relaxed64(&to->words[1], from->words[1]);
    heddle_store_relaxed64(&to->words[2], from->words[2]);
    heddle_store_relaxed64(&to->shared, from->shared);
}

static inline struct heddle_shape heddle_shape_load(const struct heddle_shape *from) {
    return (struct heddle_shape){.function = heddle_load_relaxed64(&from->function),
                                 .words = {heddle_load_relaxed64(&from->words[0]),
                                           heddle_load_relaxed64(&from->words[1]),
                                           heddle_load_relaxed64(&from->words[2])},
                                 .shared = heddle_load_relaxed64(&from->shared)};
}

/* The key of a launch, 0 if the driver does not tell the kernel's name. */
uint64_t heddle_kernel_key(const struct heddle_shape *shape);

/*
 * A launch of it is measured: describes the kernel to the daemon if that is the first one, or the
 * daemon may have come late. Asks the driver: not while capturing.
 */
void heddle_kernel_measured(uint64_t key, const struct heddle_shape *shape);

/* The same for a launch that is told for a timeline: once in each, by its number. */
void heddle_kernel_traced(uint64_t key, const struct heddle_shape *shape, uint32_t number);

/*
 * How long launches of a kernel took, in memory of this process: what heddled predicts comes from a
 * segment that the program can write to. proven is the shortest of the last ones, since others on
 * the device make a launch longer and nothing makes it shorter; 0 = none was measured yet.
 */
void heddle_kernel_took(uint64_t key, uint64_t device_ns);
uint64_t heddle_kernel_proven(uint64_t key);

/* Whether so few launches were measured that the next one should be. */
bool heddle_kernel_unproven(uint64_t key);

/* A kernel got from a library. */
void heddle_kernel_from(const void *kernel, const void *library);

/* An executable graph, made of this one. */
void heddle_kernel_graph(const void *exec, void *graph);

/* Before handles go away: functions, and the kernels of a library, NULL = of none. */
void heddle_kernel_forget(const void *library);
void heddle_kernel_forget_graph(const void *exec);
void heddle_kernel_reset(void);

#endif /* HEDDLE_KERNEL_H */
