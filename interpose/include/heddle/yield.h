/*
 * Yield points: a program of a lower class says where it can well wait, between two steps of a
 * training for example, so that it waits there and not in the middle of one.
 *
 * This header is all that a program needs, in C or C++. Nothing is linked: the functions are looked up
 * in the process at the first call (older C libraries want -ldl for that). Where Heddle is not there
 * they do nothing. Neither of them fails, prints or calls back; any thread may call them, about the
 * device of its current context.
 */
#ifndef HEDDLE_YIELD_H
#define HEDDLE_YIELD_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* As long as the class of the program allows. */
#define HEDDLE_YIELD_LONG UINT64_MAX

/* What the two functions below call. A version of Heddle that has them keeps them as they are. */
typedef uint64_t (*heddle_yield_call)(uint64_t timeout_ns);
typedef int (*heddle_wanted_call)(void);

static inline uint64_t heddle_yield_absent(uint64_t timeout_ns) {
    (void)timeout_ns;
    return 0;
}

static inline int heddle_wanted_absent(void) {
    return 0;
}

/*
 * Looks for a function among all that the process has loaded for everybody, which is where a preloaded
 * Heddle is, then in the driver's place. *final says that it makes no sense to look again: there is
 * a driver, and it is not Heddle.
 */
static inline void *heddle_yield_find(const char *name, int *final) {
    void *handle = dlopen(NULL, RTLD_LAZY);
    void *found = NULL;

    *final = 0;
    if (handle != NULL) {
        found = dlsym(handle, name);
        (void)dlclose(handle);
    }
#ifdef RTLD_NOLOAD
    if (found == NULL && (handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD)) != NULL) {
        found = dlsym(handle, name);
        (void)dlclose(handle);
        *final = 1;
    }
#endif
    return found;
}

/*
 * Waits while a program of a higher class wants the device, and returns how long it waited, in
 * nanoseconds. It does not wait longer than timeout_ns, nor longer than a launch may be held
 * (max_hold), nor once the program has had less of the last ten seconds than its weight is worth.
 */
static inline uint64_t heddle_yield(uint64_t timeout_ns) {
    static heddle_yield_call known;
    heddle_yield_call call = __atomic_load_n(&known, __ATOMIC_RELAXED);

    if (call == NULL) {
        int final = 0;
        void *address = heddle_yield_find("heddle_yield_v1", &final);

        call = heddle_yield_absent;
        if (address != NULL) {
            memcpy(&call, &address, sizeof(call));
        }
        if (address != NULL || final) {
            __atomic_store_n(&known, call, __ATOMIC_RELAXED);
        }
    }
    return call(timeout_ns);
}

/* 1 if a program of a higher class wants the device now, so that a launch would be held; else 0. */
static inline int heddle_wanted(void) {
    static heddle_wanted_call known;
    heddle_wanted_call call = __atomic_load_n(&known, __ATOMIC_RELAXED);

    if (call == NULL) {
        int final = 0;
        void *address = heddle_yield_find("heddle_wanted_v1", &final);

        call = heddle_wanted_absent;
        if (address != NULL) {
            memcpy(&call, &address, sizeof(call));
        }
        if (address != NULL || final) {
            __atomic_store_n(&known, call, __ATOMIC_RELAXED);
        }
    }
    return call();
}

#endif /* HEDDLE_YIELD_H */
