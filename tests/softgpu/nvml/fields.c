/* nvmlDeviceGetFieldValues: many numbers in one call, each with its own verdict. */
#include "internal.h"

#include <stddef.h>

enum {
    FIELD_TOTAL_ENERGY = 83,
    FIELD_NVLINK_LINK_COUNT = 91,
    FIELD_RESETLESS_MIG = 184,
    FIELD_POWER_AVERAGE = 185,
    FIELD_POWER_INSTANT = 186,
    FIELD_POWER_MIN_LIMIT = 187,
    FIELD_POWER_MAX_LIMIT = 188,
    FIELD_POWER_DEFAULT_LIMIT = 189,
    FIELD_POWER_CURRENT_LIMIT = 190,
    FIELD_POWER_REQUESTED_LIMIT = 192,
    FIELD_MIG_QUERY_ANY_MODE = 199,
    FIELD_RECOVERY_ACTION = 230,
};

static void put(nvmlFieldValue_t *field, unsigned value) {
    field->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
    field->value.uiVal = value;
}

static void answer(nvmlDevice_t device, const struct nvml_view *view, nvmlFieldValue_t *field) {
    const struct softgpu_model *m = view->model;
    field->timestamp = (long long)view->wall_us;
    field->latencyUsec = 0;
    field->nvmlReturn = NVML_SUCCESS;
    field->value.ullVal = 0;
    switch (field->fieldId) {
    case FIELD_NVLINK_LINK_COUNT:
        put(field, m->nvlinks);
        return;
    case FIELD_TOTAL_ENERGY:
        field->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
        field->nvmlReturn = nvmlDeviceGetTotalEnergyConsumption(device, &field->value.ullVal);
        return;
    case FIELD_RESETLESS_MIG:
        put(field, m->mig_resetless);
        return;
    case FIELD_MIG_QUERY_ANY_MODE:
        put(field, m->mig_capable);
        return;
    case FIELD_POWER_AVERAGE:
    case FIELD_POWER_INSTANT:
        put(field, sg_nvml_power_mw(view));
        return;
    case FIELD_POWER_MIN_LIMIT:
        put(field, m->power_limit_mw / 2);
        return;
    case FIELD_POWER_MAX_LIMIT:
    case FIELD_POWER_DEFAULT_LIMIT:
    case FIELD_POWER_CURRENT_LIMIT:
    case FIELD_POWER_REQUESTED_LIMIT:
        put(field, m->power_limit_mw);
        return;
    case FIELD_RECOVERY_ACTION:
        put(field, 0); /* none needed */
        return;
    default:
        field->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
        return;
    }
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *fields) {
    NVML_VIEW(view, device);
    if (count <= 0 || fields == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    for (int i = 0; i < count; i++) {
        answer(device, &view, &fields[i]);
    }
    return NVML_SUCCESS;
}
