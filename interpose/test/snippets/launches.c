/*
 * Every kind of launch on every kind of stream, each with its result and that of the wait for it. The
 * same lines must come with and without anything before the driver.
 */
#include <string.h>

#include "probe.h"

typedef unsigned long long device_ptr;

static void *handle;

#define CALL(name, types) ((int(*) types)(uintptr_t)probe_symbol(handle, name))

static const char ptx[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
                          "// softgpu.kernel mark busy time_ns=1000\n"
                          ".visible .entry mark(.param .u64 buffer)\n{\n    ret;\n}\n";

struct config {
    unsigned grid[3];
    unsigned block[3];
    unsigned shared;
    void *stream;
    void *attributes;
    unsigned count;
};

struct attribute {
    int id;
    int padding;
    char value[64];
};

static void *function;
static device_ptr buffer;

static void report(const char *what, int result) {
    const int done = CALL("cuCtxSynchronize", (void))();

    printf("%s: %d, synchronised: %d\n", what, result, done);
}

static void kernels(void *stream, const char *suffix) {
    void *params[] = {&buffer};
    size_t size = sizeof(buffer);
    void *extra[] = {(void *)1, &buffer, (void *)2, &size, NULL};
    struct attribute cooperative = {.id = 2};
    struct config config = {{1, 1, 1}, {32, 1, 1}, 0, stream, NULL, 0};
    char name[64];

    snprintf(name, sizeof(name), "cuLaunchKernel%s", suffix);
    report(name, CALL(name, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                             unsigned, void *, void **, void **))(function, 1, 1, 1, 32, 1, 1, 0,
                                                                  stream, params, NULL));
    report("with extra", CALL(name, (void *, unsigned, unsigned, unsigned, unsigned, unsigned,
                                     unsigned, unsigned, void *, void **, void **))(
                             function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, extra));
    report("of no function", CALL(name, (void *, unsigned, unsigned, unsigned, unsigned, unsigned,
                                         unsigned, unsigned, void *, void **, void **))(
                                 NULL, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
    snprintf(name, sizeof(name), "cuLaunchKernelEx%s", suffix);
    report(name, CALL(name, (const struct config *, void *, void **, void **))(&config, function,
                                                                               params, NULL));
    cooperative.value[0] = 1;
    config.attributes = &cooperative;
    config.count = 1;
    report("with an attribute", CALL(name, (const struct config *, void *, void **, void **))(
                                    &config, function, params, NULL));
    snprintf(name, sizeof(name), "cuLaunchCooperativeKernel%s", suffix);
    report(name,
           CALL(name, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       void *, void **))(function, 1, 1, 1, 32, 1, 1, 0, stream, params));
}

static void graph(void *stream) {
    void *captured = NULL;
    void *exec = NULL;
    void *params[] = {&buffer};

    report("begin", CALL("cuStreamBeginCapture_v2", (void *, int))(stream, 2));
    report("captured",
           CALL("cuLaunchKernel",
                (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                 void *, void **, void **))(function, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
    report("end", CALL("cuStreamEndCapture", (void *, void **))(stream, &captured));
    report("instantiate",
           CALL("cuGraphInstantiateWithFlags", (void **, void *, uint64_t))(&exec, captured, 0));
    if (exec != NULL) {
        report("cuGraphLaunch", CALL("cuGraphLaunch", (void *, void *))(exec, stream));
        report("cuGraphLaunch_ptsz", CALL("cuGraphLaunch_ptsz", (void *, void *))(exec, stream));
    }
}

int main(void) {
    void *context = NULL;
    void *module = NULL;
    void *stream = NULL;

    handle = dlopen("libcuda.so.1", RTLD_NOW);
    if (handle == NULL) {
        return 1;
    }
    printf("init: %d\n", CALL("cuInit", (unsigned))(0));
    printf("context: %d\n", CALL("cuCtxCreate_v2", (void **, unsigned, int))(&context, 0, 0));
    printf("module: %d\n", CALL("cuModuleLoadData", (void **, const void *))(&module, ptx));
    printf("function: %d\n",
           CALL("cuModuleGetFunction", (void **, void *, const char *))(&function, module, "mark"));
    printf("alloc: %d\n", CALL("cuMemAlloc_v2", (device_ptr *, size_t))(&buffer, 4096));
    printf("stream: %d\n", CALL("cuStreamCreate", (void **, unsigned))(&stream, 1));
    kernels(NULL, "");
    kernels(stream, "");
    kernels(NULL, "_ptsz");
    kernels((void *)1, "");
    kernels((void *)2, "");
    graph(stream);
    printf("free: %d, again: %d\n", CALL("cuMemFree_v2", (device_ptr))(buffer),
           CALL("cuMemFree_v2", (device_ptr))(buffer));
    return 0;
}
