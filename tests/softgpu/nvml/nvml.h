/* The part of NVML's binary interface that the software GPU implements, in our own words: only the types
 * that our functions take, with the names that its public documentation uses. */
#ifndef SOFTGPU_NVML_NVML_H
#define SOFTGPU_NVML_NVML_H

#include <stddef.h>
#include <stdint.h>

/* A struct that carries its own version has its size in the low bits and its number in the top byte. */
#define NVML_VERSION_OF(type, number) ((unsigned)sizeof(type) | ((unsigned)(number) << 24))

typedef enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_TIMEOUT = 10,
    NVML_ERROR_GPU_IS_LOST = 15,
    NVML_ERROR_RESET_REQUIRED = 16,
    NVML_ERROR_IN_USE = 19,
    NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_ERROR_UNKNOWN = 999,
} nvmlReturn_t;

enum {
    NVML_CLOCK_GRAPHICS = 0,
    NVML_CLOCK_SM = 1,
    NVML_CLOCK_MEM = 2,
    NVML_CLOCK_VIDEO = 3,

    NVML_ARCH_AMPERE = 7,
    NVML_ARCH_HOPPER = 9,
    NVML_ARCH_BLACKWELL = 10,

    NVML_BRAND_NVIDIA_RTX = 13,
    NVML_BRAND_NVIDIA = 14,

    NVML_BUS_TYPE_PCIE = 2,

    NVML_VALUE_TYPE_UNSIGNED_INT = 1,
    NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3,

    NVML_SAMPLES_POWER = 0,
    NVML_SAMPLES_GPU = 1,
    NVML_SAMPLES_MEMORY = 2,

    NVML_PROCESS_MODE_COMPUTE = 0,
    NVML_PROCESS_MODE_GRAPHICS = 1,
    NVML_PROCESS_MODE_MPS = 2,
    NVML_PROCESS_MODE_ALL = 3,

    NVML_COMPUTE_INSTANCE_PROFILES = 9,
    NVML_GPU_INSTANCE_PROFILES = 18,
    NVML_PROFILE_CAPS_P2P = 1,
    NVML_PROFILE_CAPS_GFX = 2,
    NVML_COMPUTE_PROFILE_CAPS_GFX = 1,
};

static const unsigned NVML_NO_INSTANCE = 0xffffffffU; /* "of no GPU or compute instance" */

typedef struct nvml_device *nvmlDevice_t;
typedef struct nvml_gpu_instance *nvmlGpuInstance_t;
typedef struct nvml_compute_instance *nvmlComputeInstance_t;
typedef struct nvml_event_set *nvmlEventSet_t;

typedef struct {
    char busIdLegacy[16];
    unsigned domain, bus, device;
    unsigned pciDeviceId, pciSubSystemId; /* device in the high half, vendor in the low one */
    char busId[32];
} nvmlPciInfo_t;

typedef struct {
    unsigned version;
    unsigned domain, bus, device;
    unsigned pciDeviceId, pciSubSystemId;
    unsigned baseClass, subClass;
    char busId[32];
} nvmlPciInfoExt_t;

typedef struct {
    unsigned gpu, memory; /* percent */
} nvmlUtilization_t;

typedef struct {
    unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct {
    unsigned version;
    unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;

typedef struct {
    unsigned long long bar1Total, bar1Free, bar1Used;
} nvmlBAR1Memory_t;

typedef struct {
    unsigned pid;
    unsigned long long usedGpuMemory;
} nvmlProcessInfo_v1_t;

typedef struct {
    unsigned pid;
    unsigned long long usedGpuMemory;
    unsigned gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t; /* of _v2 and _v3 */

typedef struct {
    unsigned pid;
    unsigned long long usedGpuMemory;
    unsigned gpuInstanceId, computeInstanceId;
    unsigned long long usedGpuCcProtectedMemory;
} nvmlProcessDetail_t;

typedef struct {
    unsigned version, mode, numProcArrayEntries;
    nvmlProcessDetail_t *procArray;
} nvmlProcessDetailList_t;

typedef struct {
    unsigned pid;
    unsigned long long timeStamp; /* microseconds */
    unsigned smUtil, memUtil, encUtil, decUtil;
} nvmlProcessUtilizationSample_t;

typedef struct {
    unsigned long long timeStamp;
    unsigned pid;
    unsigned smUtil, memUtil, encUtil, decUtil, jpgUtil, ofaUtil;
} nvmlProcessUtilizationInfo_t;

typedef struct {
    unsigned version, processSamplesCount;
    unsigned long long lastSeenTimeStamp;
    nvmlProcessUtilizationInfo_t *procUtilArray;
} nvmlProcessesUtilizationInfo_t;

typedef union {
    double dVal;
    unsigned uiVal;
    unsigned long ulVal;
    unsigned long long ullVal;
    signed long long sllVal;
} nvmlValue_t;

typedef struct {
    unsigned long long timeStamp;
    nvmlValue_t sampleValue;
} nvmlSample_t;

typedef struct {
    unsigned fieldId, scopeId;
    long long timestamp, latencyUsec;
    unsigned valueType;
    nvmlReturn_t nvmlReturn;
    nvmlValue_t value;
} nvmlFieldValue_t;

typedef struct {
    unsigned version, sensorType;
    int temperature;
} nvmlTemperature_t;

typedef struct {
    unsigned version;
    char branch[80];
} nvmlSystemDriverBranchInfo_t;

typedef struct {
    unsigned multiprocessorCount;
    unsigned sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount;
    unsigned sharedJpegCount, sharedOfaCount;
    unsigned gpuInstanceSliceCount, computeInstanceSliceCount;
    unsigned long long memorySizeMB;
} nvmlDeviceAttributes_t;

typedef struct {
    unsigned start, size; /* memory slices */
} nvmlGpuInstancePlacement_t;

typedef struct {
    unsigned id, isP2pSupported, sliceCount, instanceCount;
    unsigned multiprocessorCount, copyEngineCount, decoderCount, encoderCount, jpegCount, ofaCount;
    unsigned long long memorySizeMB;
} nvmlGpuInstanceProfileInfo_t;

typedef struct {
    unsigned version, id, isP2pSupported, sliceCount, instanceCount;
    unsigned multiprocessorCount, copyEngineCount, decoderCount, encoderCount, jpegCount, ofaCount;
    unsigned long long memorySizeMB;
    char name[96];
} nvmlGpuInstanceProfileInfo_v2_t;

typedef struct {
    unsigned version, id, sliceCount, instanceCount;
    unsigned multiprocessorCount, copyEngineCount, decoderCount, encoderCount, jpegCount, ofaCount;
    unsigned long long memorySizeMB;
    char name[96];
    unsigned capabilities;
} nvmlGpuInstanceProfileInfo_v3_t;

typedef struct {
    nvmlDevice_t device;
    unsigned id, profileId;
    nvmlGpuInstancePlacement_t placement;
} nvmlGpuInstanceInfo_t;

typedef struct {
    unsigned start, size; /* compute slices of the GPU instance */
} nvmlComputeInstancePlacement_t;

typedef struct {
    unsigned id, sliceCount, instanceCount, multiprocessorCount;
    unsigned sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount;
    unsigned sharedJpegCount, sharedOfaCount;
} nvmlComputeInstanceProfileInfo_t;

typedef struct {
    unsigned version, id, sliceCount, instanceCount, multiprocessorCount;
    unsigned sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount;
    unsigned sharedJpegCount, sharedOfaCount;
    char name[96];
} nvmlComputeInstanceProfileInfo_v2_t;

typedef struct {
    unsigned version, id, sliceCount, instanceCount, multiprocessorCount;
    unsigned sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount;
    unsigned sharedJpegCount, sharedOfaCount;
    char name[96];
    unsigned capabilities;
} nvmlComputeInstanceProfileInfo_v3_t;

typedef struct {
    nvmlDevice_t device;
    nvmlGpuInstance_t gpuInstance;
    unsigned id, profileId;
    nvmlComputeInstancePlacement_t placement;
} nvmlComputeInstanceInfo_t; /* of _v2 */

typedef struct {
    nvmlDevice_t device;
    unsigned long long eventType, eventData;
    unsigned gpuInstanceId, computeInstanceId;
} nvmlEventData_t; /* of _v2 */

/* The layouts are another library's promise to its callers; these are the sizes it has on 64-bit machines. */
_Static_assert(sizeof(nvmlPciInfo_t) == 68, "pci info");
_Static_assert(sizeof(nvmlPciInfoExt_t) == 64, "pci info ext");
_Static_assert(sizeof(nvmlMemory_v2_t) == 40, "memory v2");
_Static_assert(sizeof(nvmlProcessInfo_v1_t) == 16, "process info v1");
_Static_assert(sizeof(nvmlProcessInfo_t) == 24, "process info");
_Static_assert(sizeof(nvmlProcessDetail_t) == 32, "process detail");
_Static_assert(sizeof(nvmlProcessUtilizationSample_t) == 32, "process utilization");
_Static_assert(sizeof(nvmlFieldValue_t) == 40, "field value");
_Static_assert(sizeof(nvmlDeviceAttributes_t) == 40, "attributes");
_Static_assert(sizeof(nvmlGpuInstanceProfileInfo_t) == 48, "profile info");
_Static_assert(sizeof(nvmlGpuInstanceProfileInfo_v2_t) == 152, "profile info v2");
_Static_assert(sizeof(nvmlGpuInstanceProfileInfo_v3_t) == 152, "profile info v3");
_Static_assert(sizeof(nvmlEventData_t) == 32, "event data v2");
_Static_assert(sizeof(nvmlGpuInstanceInfo_t) == 24, "instance info");
_Static_assert(sizeof(nvmlComputeInstanceProfileInfo_t) == 36, "compute profile info");
_Static_assert(sizeof(nvmlComputeInstanceProfileInfo_v2_t) == 136, "compute profile info v2");
_Static_assert(sizeof(nvmlComputeInstanceProfileInfo_v3_t) == 140, "compute profile info v3");
_Static_assert(sizeof(nvmlComputeInstanceInfo_t) == 32, "compute instance info v2");

#endif
