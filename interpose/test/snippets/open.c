/* Opens the driver by the name given: a SONAME, the development name or a path. */
#include "probe.h"

int main(int argc, char **argv) {
    void *handle = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;

    if (handle == NULL) {
        printf("%s\n", argc == 2 ? dlerror() : "usage: open NAME");
        return 1;
    }
    return probe_report(probe_symbol(handle, "cuInit"));
}
