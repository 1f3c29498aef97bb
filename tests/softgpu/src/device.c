/* Devices: numbers, names, attributes. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "driver.h"
#include "mig.h"

bool sg_device_ok(int device) {
    return device >= 0 && device < sg.device_count;
}

struct softgpu_device *sg_device(int device) {
    return &sg.node.st->devices[sg.visible[device]];
}

uint32_t sg_unit_index(int device) {
    return sg.units[device];
}

struct softgpu_unit *sg_unit(int device) {
    return &sg.node.st->units[sg.units[device]];
}

const struct softgpu_mig_compute *sg_mig_of(int device) {
    const struct softgpu_unit *u = sg_unit(device);
    return u->instance == SOFTGPU_NONE ? NULL
                                       : &sg_device(device)->mig[u->instance].compute[u->compute];
}

/* "NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb": the part only where it is not the whole GPU instance. */
static void name_of(char *name, size_t size, int device) {
    const struct softgpu_device *d = sg_device(device);
    const struct softgpu_mig_compute *c = sg_mig_of(device);
    char part[16] = "";
    if (c == NULL) {
        snprintf(name, size, "%s", d->product);
        return;
    }
    const struct softgpu_mig_profile *p =
        sg_mig_profile(sg_model(device), d->mig[sg_unit(device)->instance].profile);
    if (c->size != p->slices) {
        snprintf(part, sizeof(part), "%uc.", c->size);
    }
    snprintf(name, size, "%s MIG %s%s", d->product, part, p->name);
}

const struct softgpu_model *sg_model(int device) {
    return softgpu_model_find(sg_device(device)->model);
}

void sg_sm_limits(int device, struct sg_sm_limits *out) {
    const struct softgpu_model *m = sg_model(device);
    out->threads = m->threads_per_sm;
    out->blocks = m->blocks_per_sm;
    out->registers = m->registers_per_sm;
    out->smem = m->smem_per_sm;
}

SG_API(cuDeviceGetCount, (int *count)) {
    SG_ENTER();
    if (count == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *count = sg.device_count;
    return CUDA_SUCCESS;
}

SG_API(cuDeviceGet, (CUdevice * device, int ordinal)) {
    SG_ENTER();
    if (device == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sg_device_ok(ordinal)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *device = ordinal;
    return CUDA_SUCCESS;
}

SG_API(cuDeviceGetName, (char *name, int len, CUdevice device)) {
    SG_ENTER();
    if (name == NULL || len <= 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sg_device_ok(device)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    name_of(name, (size_t)len, device);
    return CUDA_SUCCESS;
}

/* The second version knows MIG devices; to the first they are their GPU. */
static CUresult get_uuid(CUuuid *uuid, CUdevice device, bool mig) {
    if (uuid == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sg_device_ok(device)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    const struct softgpu_mig_compute *c = mig ? sg_mig_of(device) : NULL;
    memcpy(uuid->bytes, c != NULL ? c->uuid : sg_device(device)->uuid, sizeof(uuid->bytes));
    return CUDA_SUCCESS;
}

SG_API(cuDeviceGetUuid, (CUuuid * uuid, CUdevice device)) {
    SG_ENTER();
    return get_uuid(uuid, device, false);
}

SG_API(cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice device)) {
    SG_ENTER();
    return get_uuid(uuid, device, true);
}

SG_API(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device)) {
    SG_ENTER();
    if (bytes == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sg_device_ok(device)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *bytes = sg_unit(device)->memory_bytes;
    return CUDA_SUCCESS;
}

SG_API(cuDeviceComputeCapability, (int *major, int *minor, CUdevice device)) {
    SG_ENTER();
    if (major == NULL || minor == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sg_device_ok(device)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *major = (int)sg_model(device)->cc_major;
    *minor = (int)sg_model(device)->cc_minor;
    return CUDA_SUCCESS;
}

SG_API(cuDeviceGetPCIBusId, (char *id, int len, CUdevice device)) {
    SG_ENTER();
    if (id == NULL || len < 13) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sg_device_ok(device)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    const struct softgpu_device *d = sg_device(device);
    snprintf(id, (size_t)len, "%04x:%02x:%02x.0", d->pci_domain, d->pci_bus, d->pci_device);
    return CUDA_SUCCESS;
}

SG_API(cuDeviceGetByPCIBusId, (CUdevice * device, const char *id)) {
    SG_ENTER();
    if (device == NULL || id == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    unsigned domain = 0;
    unsigned bus;
    unsigned slot;
    if (sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3) {
        domain = 0;
        if (sscanf(id, "%x:%x", &bus, &slot) != 2) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    for (int i = 0; i < sg.device_count; i++) {
        const struct softgpu_device *d = sg_device(i);
        if (d->pci_domain == domain && d->pci_bus == bus && d->pci_device == slot) {
            *device = i;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

SG_API(cuDeviceCanAccessPeer, (int *can, CUdevice device, CUdevice peer)) {
    SG_ENTER();
    if (can == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sg_device_ok(device) || !sg_device_ok(peer)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *can = 0;
    return CUDA_SUCCESS;
}

SG_API(cuDeviceGetP2PAttribute, (int *value, int attribute, CUdevice from, CUdevice to)) {
    SG_ENTER();
    if (value == NULL || attribute < 1 || attribute > 5 || from == to) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sg_device_ok(from) || !sg_device_ok(to)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *value = 0;
    return CUDA_SUCCESS;
}

SG_API(cuDeviceGetExecAffinitySupport, (int *supported, int type, CUdevice device)) {
    SG_ENTER();
    if (supported == NULL || type != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sg_device_ok(device)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *supported = 0;
    return CUDA_SUCCESS;
}
