/* The launch path allocates nothing, whatever the gate says. Built without sanitizers only. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon.h"
#include "message.h"
#include "test.h"

int cuInit(unsigned flags);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **params, void **extra);
int cuGraphLaunch(void *graph, void *stream);
int cuStreamSynchronize(void *stream);

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static __thread volatile long allocations; /* of this thread */

void *malloc(size_t size) {
    allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    allocations++;
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
    allocations++;
    return __libc_realloc(old, size);
}

static char stream[16];

static void launch_some(void) {
    for (int i = 0; i < 1000; i++) {
        (void)cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
        (void)cuGraphLaunch(NULL, stream);
        (void)cuStreamSynchronize(stream);
    }
}

static void check_gate(struct test_daemon *daemon, uint32_t gate) {
    long before = 0;

    test_daemon_publish(daemon, 0, gate);
    before = allocations;
    launch_some();
    CHECK_EQUAL(allocations - before, 0);
}

TEST("counting works at all") {
    const long before = allocations;
    void *volatile block = malloc(1);

    CHECK_EQUAL(allocations - before, 1);
    free(block);
}

TEST("no launch allocates, with the gate open, watched, yielding or bounded") {
    char folder[] = "/tmp/heddle-test-XXXXXX";
    char name[64];
    struct test_daemon *daemon = NULL;
    void *context = NULL;

    CHECK(mkdtemp(folder) != NULL);
    snprintf(name, sizeof(name), "%s/attach.sock", folder);
    setenv("HEDDLE_SOCKET", name, 1);
    daemon = test_daemon_start(name, HEDDLE_STATUS_OK);
    CHECK_EQUAL(cuInit(0), 0);
    CHECK_EQUAL(cuCtxCreate_v2(&context, 0, 0), 0);
    test_daemon_verdict(daemon)->devices[0].window_ns = 1000000;
    test_daemon_verdict(daemon)->devices[0].estimate_ns = 1000;
    test_daemon_verdict(daemon)->devices[0].yields[0] = 5;
    (void)cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
    check_gate(daemon, 0);
    check_gate(daemon, HEDDLE_GATE_PUBLISH);
    check_gate(daemon, HEDDLE_GATE_YIELD);
    check_gate(daemon, HEDDLE_GATE_YIELD | HEDDLE_GATE_PUBLISH | HEDDLE_GATE_WINDOW);
    test_daemon_kill(daemon);
    CHECK(rmdir(folder) == 0);
}
