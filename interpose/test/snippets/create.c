/* cuMemCreate for the device, for the host and for a NUMA node, with options that end at a page
 * that must not be touched. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "probe.h"

enum { PROP_BYTES = 32 }; /* of the driver's structure */

typedef int (*create_call)(unsigned long long *, size_t, const void *, unsigned long long);
typedef int (*release_call)(unsigned long long);

static int *before_guard(void) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE) != 0) {
        return NULL;
    }
    return (int *)(void *)(pages + page - PROP_BYTES);
}

int main(void) {
    /* device, host, host NUMA node, the calling thread's, and nonsense */
    static const int locations[][2] = {{1, 0}, {2, 0}, {3, 0}, {4, 0}, {77, 3}, {1, 99}};
    void *handle = dlopen("libcuda.so.1", RTLD_NOW);
    create_call create = NULL;
    release_call release = NULL;
    int *prop = before_guard();

    if (handle == NULL || prop == NULL) {
        return 1;
    }
    create = (create_call)(uintptr_t)probe_symbol(handle, "cuMemCreate");
    release = (release_call)(uintptr_t)probe_symbol(handle, "cuMemRelease");
    (void)((init_call)(uintptr_t)probe_symbol(handle, "cuInit"))(0);
    for (size_t i = 0; i < sizeof(locations) / sizeof(locations[0]); i++) {
        unsigned long long memory = 0;
        int result = 0;

        memset(prop, 0, PROP_BYTES);
        prop[0] = 1; /* pinned */
        prop[2] = locations[i][0];
        prop[3] = locations[i][1];
        result = create(&memory, (size_t)2 << 20, prop, 0);
        printf("location %d %d: %d\n", locations[i][0], locations[i][1], result);
        if (result == 0) {
            printf("release: %d, again: %d\n", release(memory), release(memory));
        }
    }
    return 0;
}
