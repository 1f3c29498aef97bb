/* Filling the tables behind the exports. */
#ifndef HEDDLE_RESOLVE_H
#define HEDDLE_RESOLVE_H

#include <stdbool.h>
#include <stdint.h>

#include "symbols.h"

/* Called by the lazy stubs: fills all tables, returns where this name leads from now on. */
heddle_code heddle_resolve(uint32_t index);

/* The export of ours that stands for a driver's address, or NULL if the address has no name. */
void *heddle_resolve_export(const void *address, const char *asked);

/* Whether the driver has this function itself. */
bool heddle_resolve_has(enum heddle_symbol_index index);

#endif /* HEDDLE_RESOLVE_H */
