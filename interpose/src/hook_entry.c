/* How programs get in: cuInit, and the driver's own way of naming its functions. */
#include <stddef.h>
#include <stdint.h>

#include "client.h"
#include "connect.h"
#include "driver.h"
#include "resolve.h"
#include "symbols.h"

HEDDLE_HOOK(cuInit, (unsigned flags)) {
    const heddle_result result = HEDDLE_REAL(cuInit)(flags);

    if (result == HEDDLE_CUDA_SUCCESS) {
        heddle_connect_ensure();
    }
    return result;
}

/*
 * The driver answers with the caller's own arguments; its address is exchanged for our export of the
 * same name. One without a name is handed on: a call that is not scheduled, rather than a crash.
 */
static heddle_result named(const char *symbol, void **function, heddle_result result) {
    void *export = NULL;

    if (result != HEDDLE_CUDA_SUCCESS || function == NULL || *function == NULL) {
        return result;
    }
    export = heddle_resolve_export(*function, symbol);
    if (export != NULL) {
        *function = export;
    } else {
        heddle_add_seq_cst64(&heddle_client()->process.unnamed_addresses, 1);
    }
    return result;
}

HEDDLE_HOOK(cuGetProcAddress, (const char *symbol, void **function, int version, uint64_t flags)) {
    return named(symbol, function, HEDDLE_REAL(cuGetProcAddress)(symbol, function, version, flags));
}

HEDDLE_HOOK(cuGetProcAddress_v2,
            (const char *symbol, void **function, int version, uint64_t flags, int *status)) {
    return named(symbol, function,
                 HEDDLE_REAL(cuGetProcAddress_v2)(symbol, function, version, flags, status));
}
