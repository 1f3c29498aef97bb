#include "driver.h"

#include <dlfcn.h>

const char *client_driver_open(struct client_driver *out) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    if (library == NULL) {
        return dlerror();
    }
#define CLIENT_DRIVER_LOAD(field, name, args)                                                      \
    *(void **)&out->field = dlsym(library, name);                                                  \
    if (out->field == NULL) {                                                                      \
        return "driver lacks " name;                                                               \
    }
    CLIENT_DRIVER_ENTRIES(CLIENT_DRIVER_LOAD)
#undef CLIENT_DRIVER_LOAD
    return NULL;
}
