/* Who a device is: name, UUID, serial number, place on the bus, architecture. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

nvmlReturn_t sg_nvml_copy(char *to, unsigned length, const char *text) {
    if (to == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (strlen(text) >= length) {
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    strcpy(to, text);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length) {
    NVML_VIEW_ANY(view, device);
    return sg_nvml_copy(name, length, view.name);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length) {
    NVML_VIEW_ANY(view, device);
    return sg_nvml_copy(uuid, length, view.uuid);
}

nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned length) {
    NVML_VIEW(view, device);
    return sg_nvml_copy(serial, length, view.serial);
}

nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char *version, unsigned length) {
    NVML_VIEW(view, device);
    return sg_nvml_copy(version, length, "00.00.00.00.00");
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index) {
    NVML_VIEW_ANY(view, device);
    return sg_nvml_put(index, view.is_mig ? view.mig_index : view.index);
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *minor) {
    NVML_VIEW(view, device);
    return sg_nvml_put(minor, view.minor);
}

nvmlReturn_t nvmlDeviceGetModuleId(nvmlDevice_t device, unsigned *id) {
    NVML_VIEW(view, device);
    return sg_nvml_put(id, view.index);
}

nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, unsigned *brand) {
    NVML_VIEW_ANY(view, device);
    bool rtx = strstr(view.model->product, "RTX") != NULL;
    return sg_nvml_put(brand, rtx ? NVML_BRAND_NVIDIA_RTX : NVML_BRAND_NVIDIA);
}

nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned *architecture) {
    NVML_VIEW_ANY(view, device);
    unsigned known;
    switch (view.model->cc_major) {
    case 8:
        known = NVML_ARCH_AMPERE;
        break;
    case 9:
        known = NVML_ARCH_HOPPER;
        break;
    default:
        known = NVML_ARCH_BLACKWELL;
        break;
    }
    return sg_nvml_put(architecture, known);
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
    NVML_VIEW_ANY(view, device);
    if (major == NULL || minor == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *major = (int)view.model->cc_major;
    *minor = (int)view.model->cc_minor;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned *cores) {
    NVML_VIEW(view, device);
    return sg_nvml_put(cores, view.model->sm_count * view.model->cores_per_sm);
}

void sg_nvml_bus_id(char text[32], const struct nvml_view *view) {
    snprintf(text, 32, "%08X:%02X:%02X.0", view->pci_domain, view->pci_bus & 0xffU,
             view->pci_device & 0x1fU);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    NVML_VIEW(view, device);
    if (pci == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *pci = (nvmlPciInfo_t){.domain = view.pci_domain,
                           .bus = view.pci_bus,
                           .device = view.pci_device,
                           .pciDeviceId = view.model->pci_device_id,
                           .pciSubSystemId = view.model->pci_subsystem_id};
    sg_nvml_bus_id(pci->busId, &view);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0",
             view.pci_domain & 0xffffU, view.pci_bus & 0xffU, view.pci_device & 0x1fU);
    return NVML_SUCCESS;
}

/* The older versions end before busId. */
nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, void *pci) {
    nvmlPciInfo_t whole;
    nvmlReturn_t err = nvmlDeviceGetPciInfo_v3(device, &whole);
    if (err != NVML_SUCCESS) {
        return err;
    }
    if (pci == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    memcpy(pci, &whole, offsetof(nvmlPciInfo_t, busId));
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, void *pci) {
    nvmlPciInfo_t whole;
    nvmlReturn_t err = nvmlDeviceGetPciInfo_v3(device, &whole);
    if (err != NVML_SUCCESS) {
        return err;
    }
    if (pci == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    memcpy(pci, &whole, offsetof(nvmlPciInfo_t, pciSubSystemId));
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t *pci) {
    NVML_VIEW(view, device);
    if (pci == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (pci->version != NVML_VERSION_OF(nvmlPciInfoExt_t, 1)) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    enum { CLASS_DISPLAY = 3, SUBCLASS_3D = 2 };
    *pci = (nvmlPciInfoExt_t){.version = pci->version,
                              .domain = view.pci_domain,
                              .bus = view.pci_bus,
                              .device = view.pci_device,
                              .pciDeviceId = view.model->pci_device_id,
                              .pciSubSystemId = view.model->pci_subsystem_id,
                              .baseClass = CLASS_DISPLAY,
                              .subClass = SUBCLASS_3D};
    sg_nvml_bus_id(pci->busId, &view);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBusType(nvmlDevice_t device, unsigned *type) {
    NVML_VIEW(view, device);
    return sg_nvml_put(type, NVML_BUS_TYPE_PCIE);
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned *generation) {
    NVML_VIEW(view, device);
    return sg_nvml_put(generation, view.model->pcie_generation);
}

nvmlReturn_t nvmlDeviceGetGpuMaxPcieLinkGeneration(nvmlDevice_t device, unsigned *generation) {
    NVML_VIEW(view, device);
    return sg_nvml_put(generation, view.model->pcie_generation);
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned *generation) {
    NVML_VIEW(view, device);
    return sg_nvml_put(generation, view.model->pcie_generation);
}

enum { PCIE_LANES = 16 };

nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned *width) {
    NVML_VIEW(view, device);
    return sg_nvml_put(width, PCIE_LANES);
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned *width) {
    NVML_VIEW(view, device);
    return sg_nvml_put(width, PCIE_LANES);
}

nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t device, unsigned *bits) {
    NVML_VIEW(view, device);
    return sg_nvml_put(bits, view.model->memory_bus_bits);
}
