/* Device memory that this process holds: what was allocated, where, and how much. */
#ifndef HEDDLE_LEDGER_H
#define HEDDLE_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

/* Adds an allocation; context NULL means that it outlives every context. */
void heddle_ledger_add(uint64_t handle, uint64_t bytes, uint32_t device, const void *context);

/* One more owner of a handle that is known. */
void heddle_ledger_retain(uint64_t handle);

struct heddle_allocation {
    uint64_t handle; /* 0 = none */
    uint64_t bytes;
    const void *context;
    uint32_t device;
    uint32_t owners;
};

/*
 * Takes an allocation out before the driver is asked to free it, since afterwards another thread
 * may get the same address; puts it back if the driver refuses. An unknown handle is no error: not
 * everything is counted.
 */
struct heddle_allocation heddle_ledger_take(uint64_t handle);
void heddle_ledger_put_back(const struct heddle_allocation *allocation);

void heddle_ledger_forget_context(const void *context);

/* What the graphs of a device hold, as the driver says. */
void heddle_ledger_graphs(uint32_t device, uint64_t bytes);

/* The primary context of a device, by ordinal. */
void heddle_ledger_primary(int ordinal, const void *context);
const void *heddle_ledger_primary_of(int ordinal);

void heddle_ledger_reset(void);

#endif /* HEDDLE_LEDGER_H */
