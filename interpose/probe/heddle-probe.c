/*
 * heddle-probe: the smallest program that uses the driver as programs do. `heddle doctor` starts
 * it under the interposer to see what a program gets: from which file cuInit comes, and what it
 * answers. Then it lives until its stdin is closed, so that doctor can look at it from outside.
 *
 * It knows nothing of Heddle: it asks the loader for libcuda.so.1 and takes what it is given.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

static int fail(const char *text) {
    printf("error %s\n", text);
    fflush(stdout);
    return 1;
}

static void report(void *library, const char *key, const char *name) {
    int (*ask)(int *);
    int value = 0;

    *(void **)&ask = dlsym(library, name);
    if (ask != NULL && ask(&value) == 0) {
        printf("%s %d\n", key, value);
    }
}

int main(void) {
    int (*init)(unsigned int);
    Dl_info info;
    char byte;
    int status;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);

    if (library == NULL) {
        return fail(dlerror());
    }
    *(void **)&init = dlsym(library, "cuInit");
    if (init == NULL) {
        return fail("libcuda.so.1 has no cuInit");
    }
    if (dladdr(*(void **)&init, &info) != 0 && info.dli_fname != NULL) {
        printf("library %s\n", info.dli_fname);
    }
    status = init(0);
    printf("cuinit %d\n", status);
    if (status == 0) {
        report(library, "driver_version", "cuDriverGetVersion");
        report(library, "devices", "cuDeviceGetCount");
    }
    printf("ready\n");
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    return 0;
}
