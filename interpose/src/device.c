#include "device.h"

#include <pthread.h>
#include <string.h>

#include "connect.h"
#include "driver.h"
#include "resolve.h"
#include "thread.h"

typedef heddle_result (*get_uuid)(struct heddle_uuid *, heddle_device);
typedef heddle_result (*get_device)(heddle_device *);
typedef heddle_result (*get_context)(void **);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards adding a slot */
static int ordinals[HEDDLE_DEVICES_MAX];
static uint32_t count;

uint32_t heddle_device_count(void) {
    return heddle_load_acquire32(&count);
}

int heddle_device_ordinal(uint32_t slot) {
    return ordinals[slot];
}

static int32_t find(int ordinal) {
    const uint32_t known = heddle_device_count();

    for (uint32_t i = 0; i < known; i++) {
        if (ordinals[i] == ordinal) {
            return (int32_t)i;
        }
    }
    return HEDDLE_DEVICE_NONE;
}

/* The newer function answers with a MIG device's own identity. */
static void read_uuid(int ordinal, struct heddle_uuid *uuid) {
    memset(uuid, 0, sizeof(*uuid));
    if (!heddle_resolve_has(HEDDLE_SYM_cuDeviceGetUuid_v2) ||
        HEDDLE_DRIVER(get_uuid, cuDeviceGetUuid_v2)(uuid, ordinal) != HEDDLE_CUDA_SUCCESS) {
        (void)HEDDLE_DRIVER(get_uuid, cuDeviceGetUuid)(uuid, ordinal);
    }
}

int32_t heddle_device_open(int ordinal) {
    int32_t slot = find(ordinal);
    struct heddle_uuid uuid;

    if (slot != HEDDLE_DEVICE_NONE) {
        return slot;
    }
    read_uuid(ordinal, &uuid);
    pthread_mutex_lock(&lock);
    slot = find(ordinal);
    if (slot == HEDDLE_DEVICE_NONE && count < HEDDLE_DEVICES_MAX) {
        slot = (int32_t)count;
        ordinals[slot] = ordinal;
        memcpy(heddle_client()->devices[slot].uuid, uuid.bytes, sizeof(uuid.bytes));
        heddle_store_release32(&count, count + 1);
        heddle_connect_device((uint32_t)slot);
    }
    pthread_mutex_unlock(&lock);
    return slot;
}

void heddle_device_context_changed(void) {
    heddle_thread.device_known = false;
    heddle_thread.stream = NULL;
}

void *heddle_device_context(void) {
    void *context = NULL;

    return HEDDLE_DRIVER(get_context, cuCtxGetCurrent)(&context) == HEDDLE_CUDA_SUCCESS ? context
                                                                                        : NULL;
}

int32_t heddle_device_find(void) {
    heddle_device ordinal = 0;

    if (HEDDLE_DRIVER(get_device, cuCtxGetDevice)(&ordinal) != HEDDLE_CUDA_SUCCESS) {
        return HEDDLE_DEVICE_NONE;
    }
    heddle_thread.device = heddle_device_open(ordinal);
    heddle_thread.device_known = heddle_thread.device != HEDDLE_DEVICE_NONE;
    return heddle_thread.device;
}

void heddle_device_reset(void) {
    pthread_mutex_init(&lock, NULL);
    count = 0;
}
