#include "ledger.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

/*
 * An open-addressed table that grows; a removal moves later entries back, so there are no marks of
 * deleted ones and a long-lived process does not slow down. Handles and addresses are told apart by
 * nothing: the driver gives each value once at a time.
 */
enum { FIRST_CAPACITY = 256, PRIMARIES = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static struct heddle_allocation *table;
static uint32_t capacity; /* a power of two */
static uint32_t used;
static uint64_t graph_bytes[HEDDLE_DEVICES_MAX];
static const void *primaries[PRIMARIES];

static uint32_t place(uint64_t handle) {
    return (uint32_t)((handle * 0x9e3779b97f4a7c15U) >> 32) & (capacity - 1);
}

static uint32_t find(uint64_t handle) {
    uint32_t at = place(handle);

    while (table[at].handle != 0 && table[at].handle != handle) {
        at = (at + 1) & (capacity - 1);
    }
    return at;
}

static bool grow(void) {
    struct heddle_allocation *old = table;
    const uint32_t old_capacity = capacity;
    const uint32_t wanted = capacity == 0 ? FIRST_CAPACITY : capacity * 2;
    struct heddle_allocation *fresh = calloc(wanted, sizeof(*fresh));

    if (fresh == NULL) {
        return false;
    }
    table = fresh;
    capacity = wanted;
    for (uint32_t i = 0; i < old_capacity; i++) {
        if (old[i].handle != 0) {
            table[find(old[i].handle)] = old[i];
        }
    }
    free(old);
    return true;
}

static void charge(uint32_t device, uint64_t bytes) {
    struct heddle_client_device *self = &heddle_client()->devices[device];
    const uint64_t now = heddle_load_relaxed64(&self->memory_bytes) + bytes;

    heddle_store_relaxed64(&self->memory_bytes, now);
    if (now > heddle_load_relaxed64(&self->memory_peak_bytes)) {
        heddle_store_relaxed64(&self->memory_peak_bytes, now);
    }
}

static void discharge(uint32_t device, uint64_t bytes) {
    struct heddle_client_device *self = &heddle_client()->devices[device];
    const uint64_t now = heddle_load_relaxed64(&self->memory_bytes);

    heddle_store_relaxed64(&self->memory_bytes, now > bytes ? now - bytes : 0);
}

static void count(uint64_t *counter) {
    heddle_store_relaxed64(counter, heddle_load_relaxed64(counter) + 1);
}

void heddle_ledger_add(uint64_t handle, uint64_t bytes, uint32_t device, const void *context) {
    uint32_t at = 0;

    if (handle == 0 || device >= HEDDLE_DEVICES_MAX) {
        return;
    }
    pthread_mutex_lock(&lock);
    if ((used + 1) * 4 <= capacity * 3 || grow()) {
        at = find(handle);
        if (table[at].handle == handle) {
            discharge(table[at].device, table[at].bytes); /* its end escaped us */
        } else {
            used++;
        }
        table[at] = (struct heddle_allocation){handle, bytes, context, device, 1};
        charge(device, bytes);
        count(&heddle_client()->devices[device].allocations);
    }
    pthread_mutex_unlock(&lock);
}

void heddle_ledger_retain(uint64_t handle) {
    pthread_mutex_lock(&lock);
    if (capacity != 0 && handle != 0 && table[find(handle)].handle == handle) {
        table[find(handle)].owners++;
    }
    pthread_mutex_unlock(&lock);
}

/* Closes the gap: whatever stood behind it only because it was taken moves into it. */
static void take_out(uint32_t at) {
    uint32_t next = (at + 1) & (capacity - 1);

    discharge(table[at].device, table[at].bytes);
    count(&heddle_client()->devices[table[at].device].frees);
    used--;
    while (table[next].handle != 0) {
        const uint32_t home = place(table[next].handle);

        if (((next - home) & (capacity - 1)) >= ((next - at) & (capacity - 1))) {
            table[at] = table[next];
            at = next;
        }
        next = (next + 1) & (capacity - 1);
    }
    table[at].handle = 0;
}

struct heddle_allocation heddle_ledger_take(uint64_t handle) {
    struct heddle_allocation taken = {0};

    pthread_mutex_lock(&lock);
    if (capacity != 0 && handle != 0) {
        const uint32_t at = find(handle);

        if (table[at].handle == handle) {
            taken = table[at];
            if (--table[at].owners == 0) {
                take_out(at);
            }
        }
    }
    pthread_mutex_unlock(&lock);
    return taken;
}

void heddle_ledger_put_back(const struct heddle_allocation *allocation) {
    uint64_t *frees = &heddle_client()->devices[allocation->device].frees;
    uint32_t at = 0;

    pthread_mutex_lock(&lock);
    if (allocation->handle != 0 && ((used + 1) * 4 <= capacity * 3 || grow())) {
        at = find(allocation->handle);
        if (table[at].handle == 0) {
            used++;
            charge(allocation->device, allocation->bytes);
            heddle_store_relaxed64(frees, heddle_load_relaxed64(frees) - 1);
            table[at] = *allocation;
        } else {
            table[at].owners++;
        }
    }
    pthread_mutex_unlock(&lock);
}

void heddle_ledger_forget_context(const void *context) {
    uint32_t at = 0;

    pthread_mutex_lock(&lock);
    while (at < capacity) {
        if (table[at].handle != 0 && table[at].context == context) {
            take_out(at); /* another entry may stand here now */
        } else {
            at++;
        }
    }
    pthread_mutex_unlock(&lock);
}

void heddle_ledger_graphs(uint32_t device, uint64_t bytes) {
    pthread_mutex_lock(&lock);
    discharge(device, graph_bytes[device]);
    charge(device, bytes);
    graph_bytes[device] = bytes;
    pthread_mutex_unlock(&lock);
}

void heddle_ledger_primary(int ordinal, const void *context) {
    if (ordinal >= 0 && ordinal < PRIMARIES) {
        __atomic_store_n(&primaries[ordinal], context, __ATOMIC_RELEASE);
    }
}

const void *heddle_ledger_primary_of(int ordinal) {
    return ordinal >= 0 && ordinal < PRIMARIES
               ? __atomic_load_n(&primaries[ordinal], __ATOMIC_ACQUIRE)
               : NULL;
}

void heddle_ledger_reset(void) {
    pthread_mutex_init(&lock, NULL);
    free(table);
    table = NULL;
    capacity = 0;
    used = 0;
    memset(graph_bytes, 0, sizeof(graph_bytes));
}
