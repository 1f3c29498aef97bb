/* Finding and opening the driver's own library, which has the same name as this one. */
#ifndef HEDDLE_LOCATE_H
#define HEDDLE_LOCATE_H

#include <stdbool.h>
#include <stddef.h>

/* Opens the driver, or returns NULL. Writes the path tried last, or the one opened, to path. */
void *heddle_locate_open(char *path, size_t size);

/* Whether the ELF file carries the note that marks every build of the interposer. */
bool heddle_locate_is_interposer(const char *path);

/* Reads the version out of the text of /proc/driver/nvidia/version; false if there is none. */
bool heddle_locate_version(const char *text, char *version, size_t size);

#endif /* HEDDLE_LOCATE_H */
