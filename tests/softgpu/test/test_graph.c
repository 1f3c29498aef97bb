/* Graphs made by hand, and linked modules. */
#define _GNU_SOURCE
#include "api.h"
#include "check.h"

CUresult cuGraphCreate(CUgraph *out, unsigned flags);
CUresult cuGraphDestroy(CUgraph g);
CUresult cuGraphClone(CUgraph *out, CUgraph g);
CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph g, const CUgraphNode *needs,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS *p);
CUresult cuGraphAddMemcpyNode(CUgraphNode *out, CUgraph g, const CUgraphNode *needs, size_t count,
                              const CUDA_MEMCPY3D *p, CUcontext ctx);
CUresult cuGraphAddMemsetNode(CUgraphNode *out, CUgraph g, const CUgraphNode *needs, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx);
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode n, CUDA_KERNEL_NODE_PARAMS *p);
CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS *p);
CUresult cuGraphAddDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                size_t count);
CUresult cuGraphRemoveDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                   size_t count);
CUresult cuGraphGetRootNodes(CUgraph g, CUgraphNode *out, size_t *count);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph g, unsigned long long flags);
CUresult cuGraphExecDestroy(CUgraphExec e);
CUresult cuGraphLaunch(CUgraphExec e, CUstream s);
CUresult cuLinkCreate_v2(unsigned n, const int *options, void **values, void **out);
CUresult cuLinkAddData_v2(void *l, int type, const void *data, size_t size, const char *name,
                          unsigned n, const int *options, void **values);
CUresult cuLinkComplete(void *l, void **image, size_t *size);
CUresult cuLinkDestroy(void *l);

static CUcontext ctx;
static CUmodule module;

static void run(CUgraph g) {
    CUgraphExec e;
    OK(cuGraphInstantiateWithFlags(&e, g, 0));
    OK(cuGraphLaunch(e, NULL));
    OK(cuCtxSynchronize());
    OK(cuGraphExecDestroy(e));
}

static void nodes_run_in_the_order_of_their_edges(void) {
    CUfunction stream;
    CUdeviceptr p;
    uint32_t host[4] = {0};
    uint64_t n = 4;
    OK(cuModuleGetFunction(&stream, module, "stream"));
    OK(cuMemAlloc_v2(&p, sizeof(host)));
    void *args[] = {&p, &p, &n};
    CUDA_KERNEL_NODE_PARAMS k = {.func = stream,
                                 .gridDimX = 1,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = 32,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .kernelParams = args};
    CUDA_MEMSET_NODE_PARAMS set = {.dst = p, .value = 5, .elementSize = 4, .width = 4, .height = 1};
    CUDA_MEMCPY3D down = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = p,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = host,
                          .WidthInBytes = sizeof(host),
                          .Height = 1,
                          .Depth = 1};
    CUgraph g;
    CUgraph clone;
    CUgraphNode nodes[3];
    size_t roots = 0;
    OK(cuGraphCreate(&g, 0));
    /* Made in the wrong order on purpose: copy, kernel, set. The edges say set, kernel, copy. */
    OK(cuGraphAddMemcpyNode(&nodes[2], g, NULL, 0, &down, ctx));
    OK(cuGraphAddKernelNode_v2(&nodes[1], g, NULL, 0, &k));
    OK(cuGraphAddMemsetNode(&nodes[0], g, NULL, 0, &set, ctx));
    OK(cuGraphAddDependencies(g, nodes, nodes + 1, 2));
    OK(cuGraphGetRootNodes(g, NULL, &roots));
    CHECK_EQ(roots, 1);
    run(g);
    CHECK_EQ(host[3], 6);
    OK(cuGraphClone(&clone, g));
    OK(cuGraphDestroy(g));
    host[3] = 0;
    run(clone);
    CHECK_EQ(host[3], 6);
    OK(cuGraphDestroy(clone));
    OK(cuMemFree_v2(p));
}

static void kernel_nodes_can_be_changed_before(void) {
    CUfunction fill;
    CUdeviceptr p;
    uint32_t value = 1;
    uint32_t got = 0;
    uint64_t n = 1;
    OK(cuModuleGetFunction(&fill, module, "fill"));
    OK(cuMemAlloc_v2(&p, 4));
    void *args[] = {&p, &value, &n};
    CUDA_KERNEL_NODE_PARAMS k = {.func = fill,
                                 .gridDimX = 1,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = 32,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .kernelParams = args};
    CUDA_KERNEL_NODE_PARAMS seen;
    CUgraph g;
    CUgraphNode node;
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphAddKernelNode_v2(&node, g, NULL, 0, &k));
    value = 9;
    OK(cuGraphKernelNodeSetParams_v2(node, &k));
    OK(cuGraphKernelNodeGetParams_v2(node, &seen));
    CHECK(seen.func == fill);
    CHECK_EQ(*(uint32_t *)seen.kernelParams[1], 9);
    run(g);
    OK(cuMemcpyDtoH_v2(&got, p, 4));
    CHECK_EQ(got, 9);
    k.gridDimX = 0;
    CHECK_EQ(cuGraphKernelNodeSetParams_v2(node, &k), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphDestroy(g));
    OK(cuMemFree_v2(p));
}

static void a_cycle_is_refused(void) {
    CUfunction spin;
    uint64_t ns = 1000;
    void *args[] = {&ns};
    OK(cuModuleGetFunction(&spin, module, "spin"));
    CUDA_KERNEL_NODE_PARAMS k = {.func = spin,
                                 .gridDimX = 1,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = 32,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .kernelParams = args};
    CUgraph g;
    CUgraphExec e = NULL;
    CUgraphNode n[2];
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphAddKernelNode_v2(&n[0], g, NULL, 0, &k));
    OK(cuGraphAddKernelNode_v2(&n[1], g, &n[0], 1, &k));
    OK(cuGraphAddDependencies(g, &n[1], &n[0], 1));
    CHECK_EQ(cuGraphInstantiateWithFlags(&e, g, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphRemoveDependencies(g, &n[1], &n[0], 1));
    CHECK_EQ(cuGraphRemoveDependencies(g, &n[1], &n[0], 1), CUDA_ERROR_INVALID_VALUE);
    run(g);
    OK(cuGraphDestroy(g));
}

static void linked_texts_load_as_one_module(void) {
    static const char a[] = ".version 6.4\n.target sm_70\n.visible .entry a()\n{ret;}\n";
    static const char b[] =
        ".version 6.4\n.target sm_70\n.global .u32 word;\n"
        ".visible .entry b(.param .u64 .ptr .global .align 4 p, .param .u32 q)\n"
        "{ret;}\n";
    void *link;
    void *image;
    size_t size = 0;
    CUmodule m;
    CUfunction f;
    CUdeviceptr word;
    OK(cuLinkCreate_v2(0, NULL, NULL, &link));
    OK(cuLinkAddData_v2(link, 1, a, sizeof(a), "a", 0, NULL, NULL));
    OK(cuLinkAddData_v2(link, 1, b, sizeof(b), "b", 0, NULL, NULL));
    OK(cuLinkComplete(link, &image, &size));
    OK(cuModuleLoadData(&m, image));
    OK(cuLinkDestroy(link));
    OK(cuModuleGetFunction(&f, m, "a"));
    OK(cuModuleGetFunction(&f, m, "b"));
    CHECK_EQ(cuModuleGetFunction(&f, m, "c"), CUDA_ERROR_NOT_FOUND);
    OK(cuModuleGetGlobal_v2(&word, &size, m, "word"));
    CHECK_EQ(size, 4);
    CHECK_EQ(cuModuleGetGlobal_v2(&word, &size, m, "q"), CUDA_ERROR_NOT_FOUND);
    OK(cuModuleUnload(m));
}

int main(void) {
    check_node("B200", "real-like");
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&ctx, 0, 0));
    OK(cuModuleLoad(&module, "tests/softgpu/kernels/basic.ptx"));
    RUN("nodes run in the order of their edges", nodes_run_in_the_order_of_their_edges);
    RUN("kernel nodes can be changed before", kernel_nodes_can_be_changed_before);
    RUN("a cycle is refused", a_cycle_is_refused);
    RUN("linked texts load as one module", linked_texts_load_as_one_module);
    OK(cuCtxDestroy_v2(ctx));
    return finish("test_graph");
}
