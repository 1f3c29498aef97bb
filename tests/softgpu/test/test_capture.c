/* Captures and graphs: what becomes a node, and what spoils a capture. */
#define _GNU_SOURCE
#include <pthread.h>

#include "api.h"
#include "check.h"

CUresult cuStreamBeginCapture_v2(CUstream s, int mode);
CUresult cuStreamEndCapture(CUstream s, CUgraph *out);
CUresult cuStreamIsCapturing(CUstream s, int *status);
CUresult cuThreadExchangeStreamCaptureMode(int *mode);
CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *out, size_t *count);
CUresult cuGraphGetEdges(CUgraph g, CUgraphNode *from, CUgraphNode *to, size_t *count);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph g, unsigned long long flags);
CUresult cuGraphLaunch(CUgraphExec e, CUstream s);
CUresult cuGraphExecDestroy(CUgraphExec e);
CUresult cuGraphDestroy(CUgraph g);
CUresult cuGraphExecUpdate_v2(CUgraphExec e, CUgraph g, void *result);

static CUmodule module;
static CUfunction busy;
static CUstream stream;
static CUdeviceptr state;
static const uint64_t FOLD = 6364136223846793005u;

static void launch(CUstream s, uint64_t tag) {
    uint64_t ns = 1000;
    void *params[] = {&state, &ns, &ns, &tag};
    OK(cuLaunchKernel(busy, 1, 1, 1, 32, 1, 1, 0, s, params, NULL));
}

static uint64_t result(void) {
    uint64_t v = 0;
    OK(cuMemcpyDtoH_v2(&v, state, 8));
    return v;
}

static void a_captured_graph_has_just_the_users_nodes(void) {
    CUgraph g;
    CUgraphExec e;
    size_t nodes = 0;
    size_t edges = 0;
    OK(cuMemsetD8_v2(state, 0, 8));
    OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    launch(stream, 1);
    launch(stream, 2);
    OK(cuStreamEndCapture(stream, &g));
    CHECK_EQ(result(), 0); /* nothing ran */
    OK(cuGraphGetNodes(g, NULL, &nodes));
    OK(cuGraphGetEdges(g, NULL, NULL, &edges));
    CHECK_EQ(nodes, 2);
    CHECK_EQ(edges, 1);
    OK(cuGraphInstantiateWithFlags(&e, g, 0));
    OK(cuGraphDestroy(g));
    OK(cuGraphLaunch(e, stream));
    OK(cuGraphLaunch(e, stream));
    OK(cuStreamSynchronize(stream));
    uint64_t want = 0;
    for (int i = 0; i < 2; i++) {
        want = want * FOLD + 1;
        want = want * FOLD + 2;
    }
    CHECK_EQ(result(), want);
    struct {
        int result;
        void *a, *b;
    } out;
    OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuStreamEndCapture(stream, &g));
    CHECK_EQ(cuGraphExecUpdate_v2(e, g, &out), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    OK(cuGraphDestroy(g));
    OK(cuGraphExecDestroy(e));
}

static void expect_end(CUresult want) {
    CUgraph g = NULL;
    CHECK_EQ(cuStreamEndCapture(stream, &g), want);
    CHECK((g != NULL) == (want == CUDA_SUCCESS));
    if (g != NULL) {
        OK(cuGraphDestroy(g));
    }
}

static void a_query_spoils_a_capture_of_its_thread(void) {
    CUevent e;
    OK(cuEventCreate(&e, 0));
    for (int mode = 0; mode <= 2; mode++) {
        int relaxed = mode == CU_STREAM_CAPTURE_MODE_RELAXED;
        OK(cuStreamBeginCapture_v2(stream, mode));
        launch(stream, 1);
        CHECK_EQ(cuEventQuery(e), relaxed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        expect_end(relaxed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    OK(cuEventDestroy_v2(e));
}

static CUcontext ctx;
static int exchanged;

static void *query_elsewhere(void *unused) {
    (void)unused;
    CUevent e;
    OK(cuCtxSetCurrent(ctx));
    OK(cuEventCreate(&e, 0));
    int mode = exchanged;
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    CUresult rc = cuEventQuery(e);
    OK(cuEventDestroy_v2(e));
    return (void *)(intptr_t)rc;
}

static CUresult from_another_thread(int capture_mode, int thread_mode) {
    pthread_t t;
    void *rc;
    exchanged = thread_mode;
    OK(cuStreamBeginCapture_v2(stream, capture_mode));
    launch(stream, 1);
    pthread_create(&t, NULL, query_elsewhere, NULL);
    pthread_join(t, &rc);
    return (CUresult)(intptr_t)rc;
}

static void a_query_of_another_thread_spoils_only_a_global_capture(void) {
    enum { GLOBAL, LOCAL, RELAXED };
    CHECK_EQ(from_another_thread(GLOBAL, GLOBAL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    expect_end(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK_EQ(from_another_thread(LOCAL, GLOBAL), CUDA_SUCCESS);
    expect_end(CUDA_SUCCESS);
    CHECK_EQ(from_another_thread(GLOBAL, LOCAL), CUDA_SUCCESS);
    expect_end(CUDA_SUCCESS);
    CHECK_EQ(from_another_thread(GLOBAL, RELAXED), CUDA_SUCCESS);
    expect_end(CUDA_SUCCESS);
}

static void a_capturing_stream_cannot_be_waited_for(void) {
    OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK_EQ(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    expect_end(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void streams_join_by_events_and_have_to_come_back(void) {
    CUstream other;
    CUevent fork;
    CUevent join;
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    for (int back = 0; back < 2; back++) {
        int status = 0;
        OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        launch(stream, 1);
        OK(cuEventRecord(fork, stream));
        OK(cuStreamWaitEvent(other, fork, 0));
        launch(other, 2);
        OK(cuStreamIsCapturing(other, &status));
        CHECK_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
        CHECK_EQ(cuEventQuery(fork), CUDA_ERROR_CAPTURED_EVENT);
        if (back) {
            OK(cuEventRecord(join, other));
            OK(cuStreamWaitEvent(stream, join, 0));
        }
        expect_end(back ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
        OK(cuStreamIsCapturing(other, &status));
        CHECK_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
    }
    OK(cuEventDestroy_v2(fork));
    OK(cuEventDestroy_v2(join));
    OK(cuStreamDestroy_v2(other));
}

static void the_legacy_stream_spoils_a_blocking_one(void) {
    CUstream blocking;
    CUgraph g;
    OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    OK(cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    uint64_t ns = 1000;
    uint64_t tag = 1;
    void *params[] = {&state, &ns, &ns, &tag};
    CHECK_EQ(cuLaunchKernel(busy, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL),
             CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    CHECK_EQ(cuStreamEndCapture(blocking, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK_EQ(cuStreamBeginCapture_v2(NULL, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    OK(cuStreamDestroy_v2(blocking));
}

static void all(const char *profile) {
    setenv("SOFTGPU_PROFILE", profile, 1);
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&ctx, 0, 0));
    OK(cuModuleLoad(&module, "tests/softgpu/kernels/compute.ptx"));
    OK(cuModuleGetFunction(&busy, module, "busy"));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc_v2(&state, 8));
    RUN("a captured graph has just the user's nodes", a_captured_graph_has_just_the_users_nodes);
    RUN("a query spoils a capture of its thread", a_query_spoils_a_capture_of_its_thread);
    RUN("a query of another thread spoils only a global capture",
        a_query_of_another_thread_spoils_only_a_global_capture);
    RUN("a capturing stream cannot be waited for", a_capturing_stream_cannot_be_waited_for);
    RUN("streams join by events and have to come back",
        streams_join_by_events_and_have_to_come_back);
    RUN("the legacy stream spoils a blocking one", the_legacy_stream_spoils_a_blocking_one);
    OK(cuMemFree_v2(state));
    OK(cuCtxDestroy_v2(ctx));
}

int main(int argc, char **argv) {
    check_node("H100", argc > 1 ? argv[1] : "real-like");
    all(argc > 1 ? argv[1] : "real-like");
    return finish("test_capture");
}
