/* A bounded ring of records in the client's segment; the daemon prints them. Never per launch. */
#ifndef HEDDLE_LOG_H
#define HEDDLE_LOG_H

#include "heddle/abi.h"

__attribute__((format(printf, 2, 3))) void heddle_log(enum heddle_log_level level,
                                                      const char *format, ...);

/* The ring itself, on any segment. */
void heddle_log_write(struct heddle_client_segment *segment, uint64_t time_ns,
                      enum heddle_log_level level, const char *text);

#endif /* HEDDLE_LOG_H */
