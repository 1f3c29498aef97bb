#include "graph_memory.h"

#include <stdint.h>

#include "device.h"
#include "driver.h"
#include "heddle/atomic.h"
#include "ledger.h"
#include "symbols.h"

typedef heddle_result (*get_attribute)(heddle_device, int, void *);

static uint32_t expected;

void heddle_graph_memory_expect(void) {
    heddle_store_release32(&expected, 1);
}

void heddle_graph_memory_refresh(void) {
    if (heddle_load_acquire32(&expected) == 0) {
        return;
    }
    for (uint32_t slot = 0; slot < heddle_device_count(); slot++) {
        uint64_t bytes = 0;

        if (HEDDLE_DRIVER(get_attribute, cuDeviceGetGraphMemAttribute)(
                heddle_device_ordinal(slot), HEDDLE_GRAPH_MEM_RESERVED, &bytes) ==
            HEDDLE_CUDA_SUCCESS) {
            heddle_ledger_graphs(slot, bytes);
        }
    }
}
