/* Measured durations and what is said about them. */
#ifndef PLAY_SAMPLES_H
#define PLAY_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct play_samples {
    uint64_t *values;
    size_t count;
    size_t room;
};

bool play_samples_add(struct play_samples *samples, uint64_t value); /* false: out of memory */
void play_samples_sort(struct play_samples *samples);
void play_samples_free(struct play_samples *samples);

/*
 * Nearest rank: the smallest value that at least percent of all values do not exceed, so always one
 * that was measured. The samples must be sorted; 0 if there are none.
 */
uint64_t play_samples_percentile(const struct play_samples *samples, double percent);
double play_samples_mean(const struct play_samples *samples);

#endif /* PLAY_SAMPLES_H */
