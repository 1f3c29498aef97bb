#include "tell.h"

#include <stdbool.h>
#include <string.h>

#include "client.h"

/*
 * The records are words, copied one by one: the reader may look at any time, and tells by the sequence
 * whether what it saw was whole.
 */
static void copy(void *to, const void *from, size_t bytes) {
    const unsigned char *source = from;
    uint64_t *word = to;

    for (size_t i = 0; i < bytes / sizeof(*word); i++) {
        uint64_t value = 0;

        memcpy(&value, source + i * sizeof(value), sizeof(value));
        heddle_store_relaxed64(&word[i], value);
    }
}

/*
 * As for log records: a number is claimed only while its place's last record is complete, so that a
 * writer that was stopped in the middle is not mixed with.
 */
static bool claim(uint64_t *head, uint64_t **sequence, void *ring, size_t record, uint64_t records,
                  uint64_t *number) {
    *number = heddle_load_acquire64(head);
    do {
        const uint64_t last = *number >= records ? *number - records + 1 : 0;

        *sequence = (uint64_t *)((char *)ring + *number % records * record);
        if (heddle_load_acquire64(*sequence) != last) {
            return false;
        }
    } while (!heddle_cas_seq_cst64(head, number, *number + 1));
    (void)heddle_swap_seq_cst64(*sequence, 0);
    return true;
}

static bool put(uint64_t *head, void *ring, size_t record, uint64_t records, const void *from) {
    uint64_t *sequence = NULL;
    uint64_t number = 0;

    if (!claim(head, &sequence, ring, record, records, &number)) {
        return false;
    }
    copy(sequence + 1, (const char *)from + sizeof(*sequence), record - sizeof(*sequence));
    heddle_store_release64(sequence, number + 1);
    return true;
}

HEDDLE_ASSERT_LAYOUT(offsetof(struct heddle_sample_record, sequence) == 0);
HEDDLE_ASSERT_LAYOUT(offsetof(struct heddle_kernel_record, sequence) == 0);
HEDDLE_ASSERT_LAYOUT(offsetof(struct heddle_trace_record, sequence) == 0);

void heddle_tell_sample(const struct heddle_sample_record *sample) {
    struct heddle_client_segment *self = heddle_client();

    (void)put(&self->process.samples_head, self->samples, sizeof(*sample), HEDDLE_SAMPLES, sample);
}

void heddle_tell_kernel(const struct heddle_kernel_record *kernel) {
    struct heddle_client_segment *self = heddle_client();

    (void)put(&self->process.kernels_head, self->kernels, sizeof(*kernel), HEDDLE_KERNELS, kernel);
}

void heddle_tell_trace(const struct heddle_trace_record *record) {
    struct heddle_client_segment *self = heddle_client();

    if (!put(&self->process.trace_head, self->trace, sizeof(*record), HEDDLE_TRACE, record)) {
        heddle_add_seq_cst64(&self->process.trace_dropped, 1);
    }
}
