/* One weak definition per name of NVML: it counts the call in the state file, so that a test sees what a
 * client missed, and answers that the operation is not supported. A function that this library really has
 * overrides its stub at link time, so the two lists cannot disagree. */
#include "stub.h"

/* The stubs are declared without NVML's parameters: none is read, and in the C calling conventions of the
 * platforms we build for the caller removes its own arguments. */
#define NVML_NAME(name)                                                                            \
    __attribute__((weak, visibility("default"))) nvmlReturn_t name(void);                          \
    nvmlReturn_t name(void) {                                                                      \
        return sg_nvml_stub(#name);                                                                \
    }
#include "names.def"
#undef NVML_NAME
