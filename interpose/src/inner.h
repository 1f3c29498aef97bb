/* Whether the driver's calls of its own exports come to us. */
#ifndef HEDDLE_INNER_H
#define HEDDLE_INNER_H

#include <stdbool.h>

/*
 * True if a driver binds its own launches through the dynamic linker and found ours first, as when
 * we are preloaded. Then a launch may be entered again from inside, and the fast path, which cannot
 * know, would count it twice.
 */
bool heddle_inner_calls(void *driver);

#endif /* HEDDLE_INNER_H */
