#include "settle.h"

#include <stddef.h>

#include "device.h"
#include "driver.h"
#include "measure.h"
#include "stream.h"
#include "thread.h"

/* A stream that never launched in the slow path has nothing to settle, and costs nothing. */
static struct heddle_stream *known(void *stream, bool per_thread) {
    const bool ordinary = (uintptr_t)stream > HEDDLE_STREAM_PER_THREAD;
    int32_t device = 0;

    if (!heddle_stream_any()) {
        return NULL;
    }
    if (!ordinary) {
        device = heddle_device_current();
    }
    return device < 0 ? NULL
                      : heddle_stream_find(heddle_stream_key(stream, per_thread, (uint32_t)device));
}

void heddle_settle_stream(struct heddle_settle *settle, void *stream, bool per_thread) {
    *settle = (struct heddle_settle){.entry = known(stream, per_thread)};
    if (settle->entry != NULL) {
        settle->mark = heddle_stream_mark(settle->entry);
    }
}

void heddle_settle_context(struct heddle_settle *settle, const void *context) {
    *settle = (struct heddle_settle){0};
    if (heddle_stream_any()) {
        settle->all = true;
        settle->context = context != NULL ? context : heddle_device_context();
        settle->mark = heddle_stream_mark_all(settle->context, false);
    }
}

void heddle_settle_copy(struct heddle_settle *settle, bool per_thread) {
    if (per_thread) {
        heddle_settle_stream(settle, NULL, true);
        return;
    }
    *settle = (struct heddle_settle){0};
    if (heddle_stream_any()) {
        settle->all = true;
        settle->blocking_only = true;
        settle->context = heddle_device_context();
        settle->mark = heddle_stream_mark_all(settle->context, true);
    }
}

int heddle_settle_end(const struct heddle_settle *settle, int result) {
    heddle_thread_tell();
    if (result >= HEDDLE_CUDA_FATAL_FIRST && result <= HEDDLE_CUDA_FATAL_LAST) {
        /* The context is lost with all its work: nobody shall wait for it. */
        if (heddle_stream_any()) {
            heddle_stream_forget_context(heddle_device_context());
        }
    } else if (result == HEDDLE_CUDA_SUCCESS && settle->all) {
        heddle_stream_settle_all(settle->context, settle->blocking_only, settle->mark);
    } else if (result == HEDDLE_CUDA_SUCCESS && settle->entry != NULL) {
        heddle_stream_settle(settle->entry, settle->mark);
    }
    if (result == HEDDLE_CUDA_SUCCESS) {
        heddle_measure_collect();
    }
    return result;
}
