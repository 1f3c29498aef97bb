/*
 * The module that a table is played with: PTX text with one entry per kernel name and profile.
 *
 * Every entry does the same. Each block spins until it has burned its time; then one thread of the
 * grid folds the kernel's tag into a state word. Folding does not commute, so that the word tells
 * after any number of launches whether one was lost, doubled or reordered.
 *
 *   parameter 0  address of the state word (u64), or 0
 *   parameter 1  device time of the whole kernel, ns: what a simulated device burns
 *   parameter 2  time that each block burns, ns: what a GPU burns, wave after wave
 *   parameter 3  tag
 */
#ifndef PLAY_PTX_H
#define PLAY_PTX_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "table.h"

enum play_ptx_constants {
    PLAY_PTX_BLOCK_SIZE = 1024,
    PLAY_PTX_NAME_MAX = 128,
};

struct play_ptx {
    char *text; /* for cuModuleLoadData */
    char (*names)[PLAY_PTX_NAME_MAX];
    size_t count;
};

/* Builds the module and points every kernel of the table to its entry. */
bool play_ptx_build(struct play_table *table, struct play_ptx *out, struct play_error *err);
void play_ptx_free(struct play_ptx *ptx);

/* The entry's name: what is legal of the kernel's name, and a letter for its profile. */
void play_ptx_name(const struct play_kernel *kernel, char out[PLAY_PTX_NAME_MAX]);

/* The state word after one more kernel, as the kernel itself computes it. */
uint64_t play_ptx_fold(uint64_t state, uint64_t tag);

#endif /* PLAY_PTX_H */
