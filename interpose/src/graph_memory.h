/* Memory that graphs allocate when they run: known only to the driver, so it is asked. */
#ifndef HEDDLE_GRAPH_MEMORY_H
#define HEDDLE_GRAPH_MEMORY_H

#include <stdbool.h>

/* Some graph of this process allocates: from now on the driver is asked. */
void heddle_graph_memory_expect(void);

/* Brings the count up to date, if any graph allocates. */
void heddle_graph_memory_refresh(void);

#endif /* HEDDLE_GRAPH_MEMORY_H */
