#include "file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_all(FILE *f, const char *path, size_t limit, char **text, size_t *size,
                     struct play_error *err) {
    size_t have = 0;
    size_t room = 1 << 16;
    char *buffer = malloc(room + 1);

    while (buffer != NULL) {
        have += fread(buffer + have, 1, room - have, f);
        if (have < room) {
            break;
        }
        if (room > limit) {
            free(buffer);
            return play_fail(err, "read %s: larger than %zu bytes", path, limit);
        }
        room *= 2;
        char *more = realloc(buffer, room + 1);
        if (more == NULL) {
            free(buffer);
        }
        buffer = more;
    }
    if (buffer == NULL) {
        return play_fail(err, "read %s: out of memory", path);
    }
    if (ferror(f)) {
        free(buffer);
        return play_fail(err, "read %s: %s", path, strerror(errno));
    }
    buffer[have] = '\0';
    *text = buffer;
    *size = have;
    return true;
}

bool play_file_read(const char *path, size_t limit, char **text, size_t *size,
                    struct play_error *err) {
    FILE *f = fopen(path, "re");

    if (f == NULL) {
        return play_fail(err, "open %s: %s", path, strerror(errno));
    }
    const bool ok = read_all(f, path, limit, text, size, err);
    fclose(f);
    return ok;
}
