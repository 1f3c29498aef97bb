/* What was measured, for people or as one JSON object. */
#ifndef PLAY_REPORT_H
#define PLAY_REPORT_H

#include <stdio.h>

#include "lane.h"
#include "options.h"
#include "run.h"
#include "table.h"

/* False if it could not be written. */
bool play_report(FILE *to, const struct play_options *options, const struct play_table *table,
                 const struct play_device *device, const struct play_result *result);

/* Writes text as a JSON string, quotes included. */
void play_report_string(FILE *to, const char *text);

#endif /* PLAY_REPORT_H */
