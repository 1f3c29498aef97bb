/* What belongs to the node and not to one device. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "session.h"

/* The software driver poses as one of the branch that brought the CUDA version it answers. */
static const char DRIVER_VERSION[] = "610.43.02";
static const char DRIVER_BRANCH[] = "r610_00";
static const char NVML_LIBRARY_VERSION[] = "13.610.43.02";

static nvmlReturn_t answer(char *to, unsigned length, const char *text) {
    nvmlReturn_t err = sg_nvml_ready();
    return err != NVML_SUCCESS ? err : sg_nvml_copy(to, length, text);
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length) {
    return answer(version, length, DRIVER_VERSION);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length) {
    return answer(version, length, NVML_LIBRARY_VERSION);
}

nvmlReturn_t nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_t *info, unsigned length) {
    nvmlReturn_t err = sg_nvml_ready();
    if (err != NVML_SUCCESS) {
        return err;
    }
    if (info == NULL || length > sizeof info->branch) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (info->version != NVML_VERSION_OF(nvmlSystemDriverBranchInfo_t, 1)) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    return sg_nvml_copy(info->branch, length, DRIVER_BRANCH);
}

static nvmlReturn_t cuda_version(int *version) {
    const struct sg_node *node = sg_nvml_enter();
    if (node == NULL) {
        return NVML_ERROR_UNINITIALIZED;
    }
    int known = (int)node->st->header.driver_version;
    sg_nvml_leave();
    if (version == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *version = known;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) {
    return cuda_version(version);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
    return cuda_version(version);
}

/* The path that the process was started by: its first argument. */
nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length) {
    nvmlReturn_t err = sg_nvml_ready();
    if (err != NVML_SUCCESS) {
        return err;
    }
    if (name == NULL || length == 0) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    char path[32];
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return NVML_ERROR_NOT_FOUND;
    }
    char text[1024];
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0) {
        return NVML_ERROR_NOT_FOUND;
    }
    text[n] = '\0';
    snprintf(name, length, "%s", text); /* a longer name is cut, unlike every other answer */
    return NVML_SUCCESS;
}
