#include "status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"

/* False when nobody reads any more. */
static bool write_line(struct play_status *status) {
    char line[PLAY_LINE_MAX];
    /* done first: then begun can be more, never less. */
    const uint64_t done = atomic_load(&status->done);
    const uint64_t begun = atomic_load(&status->begun);
    const int size = snprintf(line, sizeof line,
                              "{\"t_s\":%.3f,\"begun\":%" PRIu64 ",\"done\":%" PRIu64
                              ",\"last_ms\":%.3f,\"dropped\":%" PRIu64 "}\n",
                              (double)(play_now_ns() - status->start_ns) / 1e9, begun, done,
                              (double)atomic_load(&status->last_ns) / 1e6, status->dropped);

    const enum play_line_result result = play_line_write(&status->writer, line, (size_t)size);
    status->dropped += result == PLAY_LINE_DROPPED ? 1 : 0;
    return result != PLAY_LINE_CLOSED;
}

uint64_t play_status_next(uint64_t due, uint64_t interval, uint64_t now) {
    return due > now ? due : due + (now - due) / interval * interval + interval;
}

static void *report(void *argument) {
    struct play_status *status = argument;
    uint64_t next = status->start_ns;

    do {
        next = play_status_next(next + status->interval_ns, status->interval_ns, play_now_ns());
    } while (!play_bell_wait(&status->bell, next) && write_line(status));
    return NULL;
}

bool play_status_start(struct play_status *status, uint64_t interval_ms, int fd, uint64_t start_ns,
                       struct play_error *err) {
    status->interval_ns = interval_ms * 1000000U;
    status->start_ns = start_ns;
    if (interval_ms == 0) {
        return true;
    }
    play_line_open(&status->writer, fd);
    play_bell_open(&status->bell);
    const int code = pthread_create(&status->thread, NULL, report, status);
    if (code != 0) {
        play_bell_close(&status->bell);
        play_line_close(&status->writer);
        status->interval_ns = 0;
        return play_fail(err, "start the status thread: %s", strerror(code));
    }
    return true;
}

void play_status_stop(struct play_status *status) {
    if (status->interval_ns == 0) {
        return;
    }
    play_bell_ring(&status->bell);
    pthread_join(status->thread, NULL);
    play_bell_close(&status->bell);
    play_line_close(&status->writer);
}
