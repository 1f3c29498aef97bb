#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* An empty kernel. The software GPU is told that it costs nothing; a GPU knows. */
static const char MODULE[] = ".version 6.4\n"
                             ".target sm_70\n"
                             ".address_size 64\n"
                             "// softgpu.kernel nothing spin time_ns=param:0\n"
                             ".visible .entry nothing(.param .u64 time_ns)\n"
                             "{\n"
                             "    ret;\n"
                             "}\n";

bool bench_cuda_open(struct bench_cuda *cuda, struct play_error *err) {
    const struct play_driver *driver = &cuda->driver;
    CUdevice device = 0;

    memset(cuda, 0, sizeof *cuda);
    return play_driver_open(&cuda->driver, err) &&
           play_driver_ok(driver, driver->device_get(&device, 0), "cuDeviceGet", err) &&
           play_driver_ok(driver, driver->primary_retain(&cuda->context, device),
                          "cuDevicePrimaryCtxRetain", err) &&
           play_driver_ok(driver, driver->set_current(cuda->context), "cuCtxSetCurrent", err) &&
           play_driver_ok(driver, driver->module_load(&cuda->module, MODULE), "cuModuleLoadData",
                          err) &&
           play_driver_ok(driver, driver->module_function(&cuda->nothing, cuda->module, "nothing"),
                          "cuModuleGetFunction", err);
}

int bench_complain(const struct play_error *err) {
    fprintf(stderr, "bench-client: %s\n", err->text);
    return 1;
}

void *bench_map(const char *path, size_t size, struct play_error *err) {
    struct stat info;
    const int fd = open(path, O_RDWR | O_CLOEXEC);

    if (fd < 0) {
        play_fail(err, "open %s: %s", path, strerror(errno));
        return NULL;
    }
    void *shared = MAP_FAILED;
    if (fstat(fd, &info) == 0 && (size_t)info.st_size >= size) {
        shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    close(fd);
    if (shared == MAP_FAILED) {
        play_fail(err, "map %zu bytes of %s: %s", size, path, strerror(errno));
        return NULL;
    }
    return shared;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int (*run)(int, char **);
    } roles[] = {
        {"launch", bench_launch_main},
        {"gate", bench_gate_main},
        {"attach", bench_attach_main},
    };

    for (size_t i = 0; argc > 1 && i < sizeof roles / sizeof roles[0]; i++) {
        if (strcmp(argv[1], roles[i].name) == 0) {
            return roles[i].run(argc - 1, argv + 1);
        }
    }
    fprintf(stderr,
            "usage: bench-client launch | gate holder|held FILE ROUNDS | attach FILE SLOT\n");
    return 2;
}
