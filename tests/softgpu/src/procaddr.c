/* cuGetProcAddress: from a base name, a version and flags to an export. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "since.h"

/* Of the generated stubs: the names of all exports, sorted. */
extern const unsigned softgpu_names_count;
extern const char *const softgpu_names[];

enum { STATUS_FOUND = 0, STATUS_NOT_FOUND = 1, STATUS_TOO_NEW = 2 };
enum { FLAG_LEGACY = 1, FLAG_PER_THREAD = 2 };

/* The address of our own export: the interposer in front of us has the same names. */
static void *own_symbol(const char *name) {
    static void *self;
    void *handle = __atomic_load_n(&self, __ATOMIC_ACQUIRE);
    if (handle == NULL) {
        Dl_info info;
        if (dladdr((void *)(uintptr_t)&own_symbol, &info) == 0) {
            return NULL;
        }
        handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
        if (handle == NULL) {
            handle = dlopen(NULL, RTLD_LAZY); /* linked into the program itself */
        }
        if (handle == NULL) {
            return NULL;
        }
        __atomic_store_n(&self, handle, __ATOMIC_RELEASE);
    }
    return dlsym(handle, name);
}

/* First index whose name is not below `base`; exports of one base stand together but for names
 * in between, so the caller looks on while the beginning fits. */
static unsigned first_not_below(const char *base) {
    unsigned lo = 0;
    unsigned hi = softgpu_names_count;
    while (lo < hi) {
        unsigned mid = (lo + hi) / 2;
        if (strcmp(softgpu_names[mid], base) < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

struct choice {
    const char *name;
    unsigned version;
    bool known; /* some export has this base in this driver */
};

static struct choice choose(const char *base, unsigned asked, bool per_thread) {
    struct choice best = {NULL, 0, false};
    size_t len = strlen(base);
    for (unsigned i = first_not_below(base); i < softgpu_names_count; i++) {
        const char *name = softgpu_names[i];
        if (strncmp(name, base, len) != 0) {
            break;
        }
        if (sg_base_length(name) != len || (bool)sg_is_per_thread(name) != per_thread) {
            continue;
        }
        unsigned since = sg_since(name);
        if (since > SG_DRIVER_VERSION) {
            continue;
        }
        best.known = true;
        if (since <= asked && sg_version_of(name) > best.version) {
            best.name = name;
            best.version = sg_version_of(name);
        }
    }
    return best;
}

static CUresult not_there(void **address, int *status, int why) {
    *address = NULL;
    if (status != NULL) {
        *status = why;
    }
    return CUDA_ERROR_NOT_FOUND;
}

#ifdef SG_VARIANT_NEW
/* A newer driver may answer with the address of something that it does not export. */
static CUresult unexported(int *answer) {
    if (answer != NULL) {
        *answer = 4711;
    }
    return CUDA_SUCCESS;
}

SG_API(cuSoftgpuFuture, (int *answer)) {
    return unexported(answer);
}
#endif

static CUresult lookup(const char *symbol, void **address, int asked, uint64_t flags, int *status) {
    if (symbol == NULL || address == NULL || flags > 3 || asked < 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
#ifdef SG_VARIANT_NEW
    if (strcmp(symbol, "cuSoftgpuUnexported") == 0 || strcmp(symbol, "cuSoftgpuFuture") == 0) {
        *address = symbol[9] == 'U' ? (void *)(uintptr_t)&unexported : own_symbol(symbol);
        if (status != NULL) {
            *status = STATUS_FOUND;
        }
        return CUDA_SUCCESS;
    }
#endif
    if (strncmp(symbol, "cu", 2) != 0 || strncmp(symbol, "cudbg", 5) == 0) {
        return not_there(address, status, STATUS_NOT_FOUND);
    }
    struct choice plain = choose(symbol, (unsigned)asked, false);
    struct choice found = plain;
    if (flags & FLAG_PER_THREAD) {
        struct choice own = choose(symbol, (unsigned)asked, true);
        /* Only where the per-thread form is of the version that was chosen. */
        if (own.name != NULL && own.version >= plain.version) {
            found = own;
        }
    }
    if (found.name == NULL) {
        return not_there(address, status, plain.known ? STATUS_TOO_NEW : STATUS_NOT_FOUND);
    }
    *address = own_symbol(found.name);
    if (*address == NULL) {
        return not_there(address, status, STATUS_NOT_FOUND);
    }
    if (status != NULL) {
        *status = STATUS_FOUND;
    }
    return CUDA_SUCCESS;
}

SG_API(cuGetProcAddress, (const char *symbol, void **address, int version, uint64_t flags)) {
    return lookup(symbol, address, version, flags, NULL);
}

SG_API(cuGetProcAddress_v2,
       (const char *symbol, void **address, int version, uint64_t flags, int *status)) {
    return lookup(symbol, address, version, flags, status);
}

/* Undocumented tables of other libraries of the same make. There are none here. */
SG_API(cuGetExportTable, (const void **table, const CUuuid *id)) {
    if (table == NULL || id == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}
