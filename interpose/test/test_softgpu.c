/*
 * Measuring on the software GPU, whose kernels take the device time that their module says: what the
 * interposer tells must be that time. The interposer is linked into the test.
 */
#include <stdint.h>
#include <string.h>

#include "child.h"
#include "client.h"
#include "daemon.h"
#include "heddle/atomic.h"
#include "heddle/profile.h"

int cuInit(unsigned flags);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuModuleLoadData(void **module, const void *image);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuCtxSynchronize(void);
int cuStreamCreate(void **stream, unsigned flags);
int cuStreamBeginCapture_v2(void *stream, int mode);
int cuStreamEndCapture(void *stream, void **graph);
int cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags);
int cuGraphLaunch(void *exec, void *stream);
int cuGraphExecDestroy(void *exec);
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **params, void **extra);

enum { ROUNDS = 6, PAUSE_US = 10000, BRIEF_NS = 2000000, LASTING_NS = 7000000 };

static const char image[] = "// softgpu.kernel brief busy time_ns=2000000\n"
                            "// softgpu.kernel lasting busy time_ns=7000000\n"
                            ".version 7.0\n.target sm_70\n.address_size 64\n"
                            ".visible .entry brief()\n{\nret;\n}\n"
                            ".visible .entry lasting()\n{\nret;\n}\n";

static uint64_t key_of(const char *name) {
    const uint32_t grid[3] = {1, 1, 1};
    const uint32_t block[3] = {32, 1, 1};

    return heddle_profile_key(heddle_profile_name(name, strlen(name)), grid, block, 0);
}

/* The least of what was told of a kernel: noise of the machine only makes it more. */
static uint64_t least(const struct heddle_client_segment *client, uint64_t key, uint32_t flag) {
    uint64_t best = UINT64_MAX;

    for (uint64_t i = 0; i < client->process.samples_head; i++) {
        const struct heddle_sample_record *sample = &client->samples[i];
        const uint64_t value = flag == HEDDLE_SAMPLE_GAP ? sample->gap_ns : sample->device_ns;

        if (sample->kernel == key && (sample->flags & flag) != 0 && value < best) {
            best = value;
        }
    }
    return best;
}

static bool within(uint64_t got, uint64_t want) {
    return got >= want - want / 20 && got <= want + want / 20;
}

static void launch(void *function) {
    CHECK_EQUAL(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), 0);
}

static void known_kernels(void) {
    struct test_daemon *daemon = NULL;
    const struct heddle_client_segment *client = NULL;
    char state[64];
    void *context = NULL;
    void *module = NULL;
    void *brief = NULL;
    void *lasting = NULL;

    snprintf(state, sizeof(state), "%s.state", path);
    setenv("SOFTGPU_STATE", state, 1);
    daemon = test_daemon_start(path, HEDDLE_STATUS_OK);
    CHECK_EQUAL(cuInit(0), 0);
    CHECK_EQUAL(cuCtxCreate_v2(&context, 0, 0), 0);
    CHECK_EQUAL(cuModuleLoadData(&module, image), 0);
    CHECK_EQUAL(cuModuleGetFunction(&brief, module, "brief"), 0);
    CHECK_EQUAL(cuModuleGetFunction(&lasting, module, "lasting"), 0);
    test_daemon_verdict(daemon)->process.measure_every = 1;
    test_daemon_publish(daemon, 0, HEDDLE_GATE_PUBLISH | HEDDLE_GATE_MEASURE);
    for (int i = 0; i < ROUNDS; i++) {
        launch(brief);
        launch(lasting);
        CHECK_EQUAL(cuCtxSynchronize(), 0);
        pause_us(PAUSE_US);
    }
    client = test_daemon_client(daemon);
    CHECK_EQUAL(client->process.samples_head, 3 * ROUNDS - 1);
    CHECK(within(least(client, key_of("brief"), HEDDLE_SAMPLE_MEASURED), BRIEF_NS));
    CHECK(within(least(client, key_of("lasting"), HEDDLE_SAMPLE_MEASURED), LASTING_NS));
    CHECK(least(client, key_of("lasting"), HEDDLE_SAMPLE_GAP) >= PAUSE_US * 1000);
    CHECK(least(client, key_of("brief"), HEDDLE_SAMPLE_GAP) == UINT64_MAX);
    CHECK_EQUAL(client->kernels[0].key, key_of("brief"));
    CHECK(client->kernels[0].length == 5 && memcmp(client->kernels[0].name, "brief", 5) == 0);
    CHECK((client->kernels[0].flags & HEDDLE_KERNEL_ATTRIBUTES) != 0);
    test_daemon_kill(daemon);
    CHECK(unlink(state) == 0);
}

TEST("kernels of known length are told with their names, their lengths and the gaps after them") {
    in_child(known_kernels);
}

static void whole_graph(void) {
    struct test_daemon *daemon = NULL;
    const struct heddle_client_segment *client = NULL;
    char state[64];
    void *context = NULL;
    void *module = NULL;
    void *functions[2] = {NULL, NULL};
    void *stream = NULL;
    void *graph = NULL;

    snprintf(state, sizeof(state), "%s.state", path);
    setenv("SOFTGPU_STATE", state, 1);
    daemon = test_daemon_start(path, HEDDLE_STATUS_OK);
    CHECK_EQUAL(cuInit(0), 0);
    CHECK_EQUAL(cuCtxCreate_v2(&context, 0, 0), 0);
    CHECK_EQUAL(cuModuleLoadData(&module, image), 0);
    CHECK_EQUAL(cuModuleGetFunction(&functions[0], module, "brief"), 0);
    CHECK_EQUAL(cuModuleGetFunction(&functions[1], module, "lasting"), 0);
    test_daemon_verdict(daemon)->process.measure_every = 1;
    test_daemon_publish(daemon, 0, HEDDLE_GATE_MEASURE);
    CHECK_EQUAL(cuStreamCreate(&stream, 1), 0);
    CHECK_EQUAL(cuStreamBeginCapture_v2(stream, 0), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(cuLaunchKernel(functions[i], 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL), 0);
    }
    CHECK_EQUAL(cuStreamEndCapture(stream, &graph), 0);
    for (int i = 0; i < 2; i++) {
        void *exec = NULL;

        CHECK_EQUAL(cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
        CHECK_EQUAL(cuGraphLaunch(exec, stream), 0);
        CHECK_EQUAL(cuCtxSynchronize(), 0);
        CHECK_EQUAL(cuGraphExecDestroy(exec), 0);
    }
    client = test_daemon_client(daemon);
    CHECK((client->samples[0].flags & HEDDLE_SAMPLE_GRAPH) != 0);
    CHECK(client->samples[0].kernel != 0);
    CHECK(within(least(client, client->samples[0].kernel, HEDDLE_SAMPLE_MEASURED),
                 BRIEF_NS + LASTING_NS));
    CHECK_EQUAL(client->process.kernels_head, 2); /* one key, at its first and second sample */
    CHECK_EQUAL(client->kernels[1].key, client->kernels[0].key);
    CHECK((client->kernels[0].flags & HEDDLE_KERNEL_GRAPH) != 0);
    CHECK_EQUAL(client->kernels[0].grid[0], 2);
    test_daemon_kill(daemon);
    CHECK(unlink(state) == 0);
}

TEST("a graph is measured as one, under the same key however often it is instantiated") {
    in_child(whole_graph);
}
