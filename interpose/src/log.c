#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client.h"
#include "clock.h"

/*
 * A record number is claimed only while the slot's last record is complete. Else a writer that was
 * stopped in the middle is still at it after a whole turn of the ring, and this record is dropped
 * and counted rather than mixed with that one.
 */
void heddle_log_write(struct heddle_client_segment *segment, uint64_t time_ns,
                      enum heddle_log_level level, const char *text) {
    const size_t length = strlen(text);
    uint64_t number = heddle_load_acquire64(&segment->process.log_head);
    struct heddle_log_record *record = NULL;

    do {
        const uint64_t last = number >= HEDDLE_LOG_RECORDS ? number - HEDDLE_LOG_RECORDS + 1 : 0;

        record = &segment->log[number % HEDDLE_LOG_RECORDS];
        if (heddle_load_acquire64(&record->sequence) != last) {
            heddle_add_seq_cst64(&segment->process.log_dropped, 1);
            return;
        }
    } while (!heddle_cas_seq_cst64(&segment->process.log_head, &number, number + 1));
    /* Readers see an incomplete record until the last store. */
    (void)heddle_swap_seq_cst64(&record->sequence, 0);
    heddle_store_relaxed64(&record->time_ns, time_ns);
    heddle_store_relaxed32(&record->level, (uint32_t)level);
    heddle_store_relaxed32(&record->length,
                           (uint32_t)(length < HEDDLE_LOG_TEXT ? length : HEDDLE_LOG_TEXT));
    strncpy(record->text, text, HEDDLE_LOG_TEXT);
    heddle_store_release64(&record->sequence, number + 1);
}

void heddle_log(enum heddle_log_level level, const char *format, ...) {
    char text[HEDDLE_LOG_TEXT + 1];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    heddle_log_write(heddle_client(), heddle_clock_now(), level, text);
}
