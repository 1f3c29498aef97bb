/*
 * nvmlInit and nvmlShutdown: opening the node, once for all callers of the process, and the handles of
 * its devices.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "fault.h"
#include "session.h"
#include "stub.h"

static pthread_mutex_t session_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sg_node node = {.st = NULL, .fd = -1};
static unsigned users;

static nvmlReturn_t open_node(void) {
    int err = sg_state_open(&node, NULL, NULL);
    if (err == 0) {
        return NVML_SUCCESS;
    }
    /* No node to talk to is what a machine without the kernel driver looks like. */
    node = (struct sg_node){.st = NULL, .fd = -1};
    return NVML_ERROR_DRIVER_NOT_LOADED;
}

static nvmlReturn_t init(void) {
    pthread_mutex_lock(&session_lock);
    nvmlReturn_t err = users > 0 ? NVML_SUCCESS : open_node();
    if (err == NVML_SUCCESS) {
        users++;
    }
    pthread_mutex_unlock(&session_lock);
    return err;
}

nvmlReturn_t nvmlInit(void) {
    return init();
}

nvmlReturn_t nvmlInit_v2(void) {
    return init();
}

nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
    (void)flags; /* they ask to go on where a device cannot be opened; ours all can */
    return init();
}

nvmlReturn_t nvmlShutdown(void) {
    pthread_mutex_lock(&session_lock);
    nvmlReturn_t err = NVML_ERROR_UNINITIALIZED;
    if (users > 0) {
        err = NVML_SUCCESS;
        if (--users == 0) {
            sg_state_close(&node);
        }
    }
    pthread_mutex_unlock(&session_lock);
    return err;
}

/* The node stays open while a call uses it: the session's lock is held from enter to leave. */
struct sg_node *sg_nvml_enter(void) {
    pthread_mutex_lock(&session_lock);
    if (users == 0) {
        pthread_mutex_unlock(&session_lock);
        return NULL;
    }
    return &node;
}

void sg_nvml_leave(void) {
    pthread_mutex_unlock(&session_lock);
}

nvmlReturn_t sg_nvml_ready(void) {
    if (sg_nvml_enter() == NULL) {
        return NVML_ERROR_UNINITIALIZED;
    }
    sg_nvml_leave();
    return NVML_SUCCESS;
}

nvmlReturn_t sg_nvml_stub(const char *name) {
    const struct sg_node *n = sg_nvml_enter();
    if (n == NULL) {
        return NVML_ERROR_UNINITIALIZED;
    }
    sg_state_lock(n);
    sg_stub_count(n->st, name);
    sg_state_unlock(n);
    sg_nvml_leave();
    return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t sg_nvml_strike(const struct sg_node *n, const char *entry, unsigned device,
                            bool late) {
    uint32_t flags;
    uint32_t result = 0;
    if (__atomic_load_n(&n->st->header.faults_armed, __ATOMIC_RELAXED) != 0) {
        /* A slow call holds up no other, and the node stays open while it takes its time. */
        users++;
        pthread_mutex_unlock(&session_lock);
        result = sg_fault_strike(
            n->st,
            &(struct sg_call){
                .entry = entry, .pid = (uint32_t)getpid(), .device = device, .late = late},
            &flags);
        pthread_mutex_lock(&session_lock);
        users--;
    }
    return (nvmlReturn_t)result;
}

static nvmlReturn_t count(unsigned *devices) {
    const struct sg_node *n = sg_nvml_enter();
    if (n == NULL) {
        return NVML_ERROR_UNINITIALIZED;
    }
    nvmlReturn_t err = sg_nvml_put(devices, n->st->header.device_count);
    sg_nvml_leave();
    return err;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned *devices) {
    return count(devices);
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *devices) {
    return count(devices);
}

static nvmlReturn_t by_index(unsigned index, nvmlDevice_t *device) {
    unsigned devices;
    nvmlReturn_t err = count(&devices);
    if (err != NVML_SUCCESS) {
        return err;
    }
    if (device == NULL || index >= devices) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *device = sg_nvml_handle(index);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device) {
    return by_index(index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device) {
    return by_index(index, device);
}

/* Looks for the device of which `same` says yes. */
static nvmlReturn_t find(const char *entry, const void *wanted, nvmlDevice_t *device,
                         bool (*same)(const struct nvml_view *view, const void *wanted)) {
    unsigned devices;
    nvmlReturn_t err = count(&devices);
    if (err != NVML_SUCCESS) {
        return err;
    }
    if (wanted == NULL || device == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    /* One call, however many devices it looks at. */
    const struct sg_node *n = sg_nvml_enter();
    err = n == NULL ? NVML_ERROR_UNINITIALIZED : sg_nvml_strike(n, entry, SOFTGPU_NONE, false);
    if (n != NULL) {
        sg_nvml_leave();
    }
    if (err != NVML_SUCCESS) {
        return err;
    }
    for (unsigned i = 0; i < devices; i++) {
        struct nvml_view view = {.uuid = ""};
        err = sg_nvml_look(NULL, sg_nvml_handle(i), false, &view);
        if (err != NVML_SUCCESS && err != NVML_ERROR_GPU_IS_LOST) {
            return err;
        }
        if (same(&view, wanted)) {
            *device = sg_nvml_handle(i);
            return err;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

static bool same_uuid(const struct nvml_view *view, const void *wanted) {
    return strcasecmp(view->uuid, wanted) == 0;
}

static bool same_serial(const struct nvml_view *view, const void *wanted) {
    return strcmp(view->serial, wanted) == 0;
}

/* "0000:41:00.0", "00000000:41:00.0" and "41:00" are the same place. */
static bool same_bus(const struct nvml_view *view, const void *wanted) {
    unsigned domain = 0, bus = 0, device = 0;
    int end = 0;
    const char *text = wanted;
    if (sscanf(text, "%x:%x:%x%n", &domain, &bus, &device, &end) != 3) {
        domain = 0;
        if (sscanf(text, "%x:%x%n", &bus, &device, &end) != 2) {
            return false;
        }
    }
    bool tail = text[end] == '\0' || strcmp(text + end, ".0") == 0;
    return tail && domain == view->pci_domain && bus == view->pci_bus && device == view->pci_device;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
    if (uuid != NULL && strncasecmp(uuid, "MIG-", 4) == 0) {
        return sg_nvml_find_mig(__func__, uuid, device);
    }
    return find(__func__, uuid, device, same_uuid);
}

nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device) {
    return find(__func__, serial, device, same_serial);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device) {
    return find(__func__, bus_id, device, same_bus);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device) {
    return find(__func__, bus_id, device, same_bus);
}
