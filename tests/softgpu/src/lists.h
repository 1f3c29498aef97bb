/* Lists in the state file: operations of a stream, completions of a process, the free chain. */
#ifndef SOFTGPU_LISTS_H
#define SOFTGPU_LISTS_H

#include "softgpu.h"

/* Walks the streams of a unit that have work; `s` is a pointer to the stream. */
#define SG_FOR_EACH_STREAM(st, u, s)                                                               \
    for (uint32_t sg_i_ = sg_stream_next((st), (u), 0); sg_i_ != SOFTGPU_NONE;                     \
         sg_i_ = sg_stream_next((st), (u), sg_i_ + 1))                                             \
        for (struct softgpu_stream *s = &(st)->streams[sg_i_]; s != NULL; s = NULL)

/* First stream of the unit with work, from index `from` on, or SOFTGPU_NONE. */
uint32_t sg_stream_next(const struct softgpu_state *st, const struct softgpu_unit *u,
                        uint32_t from);

void sg_stream_append(struct softgpu_state *st, uint32_t op);

/* Takes op from the head of its stream and hands it to its owner. */
void sg_op_complete(struct softgpu_state *st, struct softgpu_op *op, int64_t t);

void sg_op_free(struct softgpu_state *st, uint32_t op);

/* Makes every head that may start ready, and completes what needs no resource. */
void sg_promote(struct softgpu_state *st, struct softgpu_unit *u, int64_t t);

#endif /* SOFTGPU_LISTS_H */
