/* Whole small files, read at once. */
#ifndef PLAY_FILE_H
#define PLAY_FILE_H

#include <stddef.h>

#include "error.h"

/* Reads path into *text (malloc'ed, with a NUL after its *size bytes). Refuses above limit bytes. */
bool play_file_read(const char *path, size_t limit, char **text, size_t *size,
                    struct play_error *err);

#endif /* PLAY_FILE_H */
