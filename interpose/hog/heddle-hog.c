/*
 * heddle-hog: takes up one channel of a device, to a part that is asked for, until its stdin is closed.
 * `heddle probe` runs it beside a workload and sees how much slower that becomes.
 *
 *     heddle-hog CHANNEL LEVEL     LEVEL: 1 a quarter, 2 half, 3 three quarters, 4 all of it
 *
 * It prints "ready" when its work is on the device, "skip" and a reason where the device has no such
 * channel, "error" and what failed otherwise. Like the probe of doctor it is a program as others are:
 * it asks the loader for libcuda.so.1 and takes what it is given.
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EMBED(name, path)                                                                          \
    __asm__(".section .rodata\n" #name ": .incbin \"" path "\"\n.byte 0\n.previous\n");            \
    extern const char name[] __attribute__((visibility("hidden")))

EMBED(hogs_ptx, "interpose/hog/hogs.ptx");
EMBED(tensor_ptx, "interpose/hog/tensor.ptx");

enum {
    LAUNCH_NS = 1000 * 1000, /* of one launch: long against its cost, short against a probe */
    AHEAD = 2,               /* launches that are waiting, so that the device has no pause */
    ATTRIBUTE_SMS = 16,
    ATTRIBUTE_L2 = 38,
    ATTRIBUTE_MAJOR = 75,
    TENSOR_MAJOR = 8, /* compute capability of the tensor hog's instruction */
    DRAM_BYTES_MAX = 1 << 30,
};

struct channel {
    const char *name;
    const char *kernel; /* with %d: one for each level */
    unsigned
        threads;     /* of a block; there is one block for each SM, unless it is blocks that hurt */
    unsigned blocks; /* 0 = one for each SM */
    bool tensor;
};

/* Few threads of many independent operations: they fill their channel and leave the SM to others. */
static const struct channel channels[] = {
    {"dram", "hog_dram_%d", 256, 0, false}, {"l2", "hog_l2", 256, 0, false},
    {"l1", "hog_l1", 256, 0, false},        {"issue", "hog_issue", 128, 0, false},
    {"fma", "hog_fma", 128, 0, false},      {"fp64", "hog_fp64", 128, 0, false},
    {"tensor", "hog_tensor", 128, 0, true}, {"blocks", "hog_blocks", 32, 1 << 16, false},
};

static void *library;

static int fail(const char *word, const char *text, int code) {
    printf("%s %s", word, text);
    if (code != 0) {
        printf(": %d", code);
    }
    printf("\n");
    fflush(stdout);
    return 1;
}

/* A name of the driver with the version that programs get, as an address of any type. */
static void *entry(const char *name, const char *newer) {
    void *address = newer != NULL ? dlsym(library, newer) : NULL;

    return address != NULL ? address : dlsym(library, name);
}

struct driver {
    int (*init)(unsigned);
    int (*device_get)(int *, int);
    int (*attribute)(int *, int, int);
    int (*retain)(void **, int);
    int (*set_current)(void *);
    int (*load)(void **, const void *);
    int (*function)(void **, void *, const char *);
    int (*alloc)(uint64_t *, size_t);
    int (*info)(size_t *, size_t *);
    int (*stream)(void **, unsigned);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  void *, void **, void **);
    int (*event)(void **, unsigned);
    int (*record)(void *, void *);
    int (*wait)(void *);
};

static const char *find(struct driver *d) {
    const struct {
        void **to;
        const char *name;
        const char *newer;
    } names[] = {
        {(void **)&d->init, "cuInit", NULL},
        {(void **)&d->device_get, "cuDeviceGet", NULL},
        {(void **)&d->attribute, "cuDeviceGetAttribute", NULL},
        {(void **)&d->retain, "cuDevicePrimaryCtxRetain", NULL},
        {(void **)&d->set_current, "cuCtxSetCurrent", NULL},
        {(void **)&d->load, "cuModuleLoadData", NULL},
        {(void **)&d->function, "cuModuleGetFunction", NULL},
        {(void **)&d->alloc, "cuMemAlloc", "cuMemAlloc_v2"},
        {(void **)&d->info, "cuMemGetInfo", "cuMemGetInfo_v2"},
        {(void **)&d->stream, "cuStreamCreate", NULL},
        {(void **)&d->launch, "cuLaunchKernel", NULL},
        {(void **)&d->event, "cuEventCreate", NULL},
        {(void **)&d->record, "cuEventRecord", NULL},
        {(void **)&d->wait, "cuEventSynchronize", NULL},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        *names[i].to = entry(names[i].name, names[i].newer);
        if (*names[i].to == NULL) {
            return names[i].name;
        }
    }
    return NULL;
}

struct hog {
    struct driver driver;
    const struct channel *channel;
    int level;
    int sms;
    void *function;
    void *stream;
    void *events[AHEAD];
    uint64_t data, mask, ns, rest;
};

/* The largest power of two that is no more. */
static uint64_t floor_power(uint64_t bytes) {
    while ((bytes & (bytes - 1)) != 0) {
        bytes &= bytes - 1;
    }
    return bytes;
}

/* What is walked over: far more than the L2 for memory, half of the L2 for it. */
static int allocate(struct hog *hog, int device) {
    int l2 = 0;
    size_t free_bytes = 0;
    size_t total = 0;
    uint64_t bytes = 1 << 20;
    int code = hog->driver.attribute(&l2, ATTRIBUTE_L2, device);

    if (code == 0) {
        code = hog->driver.info(&free_bytes, &total);
    }
    if (code != 0) {
        return code;
    }
    if (strcmp(hog->channel->name, "dram") == 0) {
        bytes = free_bytes / 4 < DRAM_BYTES_MAX ? free_bytes / 4 : DRAM_BYTES_MAX;
    } else if (strcmp(hog->channel->name, "l2") == 0 && l2 > 0) {
        bytes = (uint64_t)l2 / 2;
    }
    bytes = floor_power(bytes > 4096 ? bytes : 4096);
    hog->mask = (bytes - 1) & ~(uint64_t)15;
    return hog->driver.alloc(&hog->data, bytes);
}

static int launch(struct hog *hog, void *event) {
    void *parameters[] = {&hog->data, &hog->mask, &hog->ns, &hog->rest};
    const unsigned blocks = hog->channel->blocks != 0 ? hog->channel->blocks : (unsigned)hog->sms;
    int code = hog->driver.launch(hog->function, blocks, 1, 1, hog->channel->threads, 1, 1, 0,
                                  hog->stream, parameters, NULL);

    return code != 0 ? code : hog->driver.record(event, hog->stream);
}

static uint64_t now_ns(void) {
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000U + (uint64_t)time.tv_nsec;
}

/* Blocks rest on the host: a kernel that does nothing has no place to. */
static void rest(const struct hog *hog, uint64_t since) {
    const uint64_t ns = (now_ns() - since) * hog->rest / 1024;
    const struct timespec pause = {.tv_sec = (time_t)(ns / 1000000000U),
                                   .tv_nsec = (long)(ns % 1000000000U)};

    if (hog->channel->blocks != 0 && ns != 0) {
        (void)nanosleep(&pause, NULL);
    }
}

static bool closed(void) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char byte;

    return poll(&input, 1, 0) == 1 && read(STDIN_FILENO, &byte, 1) <= 0;
}

static int run(struct hog *hog) {
    int code = 0;

    for (unsigned i = 0; i < AHEAD && code == 0; i++) {
        code = hog->driver.event(&hog->events[i], 0);
        if (code == 0) {
            code = launch(hog, hog->events[i]);
        }
    }
    for (unsigned i = 0; code == 0 && !closed(); i = (i + 1) % AHEAD) {
        const uint64_t since = now_ns();
        static bool told;

        code = hog->driver.wait(hog->events[i]);
        if (code == 0 && !told) {
            told = true;
            printf("ready\n");
            fflush(stdout);
        }
        if (code == 0) {
            rest(hog, since);
            code = launch(hog, hog->events[i]);
        }
    }
    return code;
}

static int open_device(struct hog *hog, const char **what) {
    struct driver *d = &hog->driver;
    void *context = NULL;
    void *module = NULL;
    char name[32];
    int device = 0;
    int major = 0;
    int code = d->init(0);

    *what = "cuInit";
    if (code == 0) {
        *what = "device";
        code = d->device_get(&device, 0);
    }
    if (code == 0) {
        code = d->attribute(&hog->sms, ATTRIBUTE_SMS, device);
    }
    if (code == 0) {
        code = d->attribute(&major, ATTRIBUTE_MAJOR, device);
    }
    if (code == 0 && hog->channel->tensor && major < TENSOR_MAJOR) {
        return -1;
    }
    if (code == 0) {
        *what = "context";
        code = d->retain(&context, device);
    }
    if (code == 0) {
        code = d->set_current(context);
    }
    if (code == 0) {
        *what = "module";
        code = d->load(&module, hog->channel->tensor ? tensor_ptx : hogs_ptx);
    }
    if (code == 0) {
        (void)snprintf(name, sizeof(name), hog->channel->kernel, hog->level);
        code = d->function(&hog->function, module, name);
    }
    if (code == 0) {
        *what = "memory";
        code = allocate(hog, device);
    }
    if (code == 0) {
        *what = "stream";
        code = d->stream(&hog->stream, 1); /* non-blocking */
    }
    return code;
}

int main(int argc, char **argv) {
    static const uint64_t rests[] = {3072, 1024, 341, 0}; /* 1/1024 of the time that it worked */
    struct hog hog = {.ns = LAUNCH_NS};
    const char *what = NULL;
    int code = 0;

    if (argc == 3 && strlen(argv[2]) == 1 && argv[2][0] >= '1' && argv[2][0] <= '4') {
        hog.level = argv[2][0] - '0';
        hog.rest = rests[hog.level - 1];
        for (size_t i = 0; i < sizeof(channels) / sizeof(channels[0]); i++) {
            if (strcmp(argv[1], channels[i].name) == 0) {
                hog.channel = &channels[i];
            }
        }
    }
    if (hog.channel == NULL) {
        (void)fputs("usage: heddle-hog dram|l2|l1|issue|fma|fp64|tensor|blocks 1|2|3|4\n", stderr);
        return 2;
    }
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) {
        return fail("error", dlerror(), 0);
    }
    what = find(&hog.driver);
    if (what != NULL) {
        return fail("error", what, 0);
    }
    code = open_device(&hog, &what);
    if (code < 0) {
        return fail("skip", "the device has no such tensor instruction", 0);
    }
    if (code == 0) {
        what = "launch";
        code = run(&hog);
    }
    return code != 0 ? fail("error", what, code) : 0;
}
