/* The idle time between a device's last work and the next: foretold, and told when it is over. */
#ifndef HEDDLE_GAP_H
#define HEDDLE_GAP_H

#include <stdint.h>

struct heddle_stream;

/* What came last on a device. */
struct heddle_gap {
    uint64_t kernel; /* key, 0 = not known */
    uint64_t previous;
    uint64_t since_ns; /* 0: the device is not idle, or always was */
    uint32_t traced;   /* number of the timeline that was wanted when it began */
};

/* NULL: not known. */
struct heddle_gap heddle_gap_after(const struct heddle_stream *stream);

/*
 * The device turns idle, and busy again. Callers hold the device's lock; begin comes before anybody
 * can see that the device is idle.
 */
void heddle_gap_begin(uint32_t device, const struct heddle_gap *gap, uint64_t now_ns);
void heddle_gap_end(uint32_t device, uint64_t now_ns);

void heddle_gap_reset(void);

#endif /* HEDDLE_GAP_H */
