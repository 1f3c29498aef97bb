#include "samples.h"

#include <math.h>
#include <stdlib.h>

bool play_samples_add(struct play_samples *samples, uint64_t value) {
    if (samples->count == samples->room) {
        const size_t larger = samples->room == 0 ? 1024 : samples->room * 2;
        uint64_t *more = realloc(samples->values, larger * sizeof *more);
        if (more == NULL) {
            return false;
        }
        samples->values = more;
        samples->room = larger;
    }
    samples->values[samples->count++] = value;
    return true;
}

static int by_value(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

void play_samples_sort(struct play_samples *samples) {
    if (samples->count > 1) {
        qsort(samples->values, samples->count, sizeof *samples->values, by_value);
    }
}

void play_samples_free(struct play_samples *samples) {
    free(samples->values);
    *samples = (struct play_samples){NULL, 0, 0};
}

uint64_t play_samples_percentile(const struct play_samples *samples, double percent) {
    if (samples->count == 0) {
        return 0;
    }
    const double rank = ceil(percent / 100 * (double)samples->count);
    const size_t index = rank < 1 ? 0 : (size_t)rank - 1;

    return samples->values[index < samples->count ? index : samples->count - 1];
}

double play_samples_mean(const struct play_samples *samples) {
    double sum = 0;

    for (size_t i = 0; i < samples->count; i++) {
        sum += (double)samples->values[i];
    }
    return samples->count == 0 ? 0 : sum / (double)samples->count;
}
