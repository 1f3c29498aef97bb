/* Nodes and edges beyond the common ones: copies, children, changes before instantiation. */
#include <stdlib.h>

#include "driver.h"

enum { NODE_KERNEL = 0, NODE_MEMCPY = 1, NODE_HOST = 3 };

static bool is_node(CUgraphNode n) {
    return n != NULL && n->magic == SG_NODE;
}

static bool is_graph(CUgraph g) {
    return g != NULL && g->magic == SG_GRAPH;
}

SG_API(cuGraphAddMemcpyNode, (CUgraphNode * out, CUgraph g, const CUgraphNode *needs, size_t count,
                              const CUDA_MEMCPY3D *p, CUcontext ctx)) {
    SG_ENTER();
    if (p == NULL || !sg_ctx_valid(ctx)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sg_work *w = sg_copy_work(p);
    return w == NULL ? CUDA_ERROR_INVALID_VALUE
                     : sg_graph_add(out, g, needs, count, NODE_MEMCPY, w);
}

/* Replaces what a kernel node launches; the type of a node never changes. */
static CUresult set_kernel(CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS *p, CUfunction f) {
    if (!is_node(n) || n->type != NODE_KERNEL || p == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sg_work *w;
    CUresult rc = sg_kernel_work(p, f, &w);
    if (rc == CUDA_SUCCESS) {
        sg_lock();
        sg_work_free(n->work);
        free(n->params);
        n->params = NULL;
        n->work = w;
        n->function = f;
        sg_unlock();
    }
    return rc;
}

SG_API(cuGraphKernelNodeSetParams, (CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS *p)) {
    SG_ENTER();
    return p == NULL ? CUDA_ERROR_INVALID_VALUE : set_kernel(n, p, p->func);
}

SG_API(cuGraphKernelNodeSetParams_v2, (CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS *p)) {
    SG_ENTER();
    return p == NULL ? CUDA_ERROR_INVALID_VALUE
                     : set_kernel(n, p, p->func != NULL ? p->func : p->kern);
}

SG_API(cuGraphMemsetNodeGetParams, (CUgraphNode n, CUDA_MEMSET_NODE_PARAMS *p)) {
    SG_ENTER();
    if (!is_node(n) || n->type != 2 || p == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const struct sg_work *w = n->work;
    *p = (CUDA_MEMSET_NODE_PARAMS){.dst = (CUdeviceptr)(uintptr_t)w->set.to.base,
                                   .pitch = w->set.to.pitch,
                                   .value = w->set.value,
                                   .elementSize = w->set.size,
                                   .width = w->set.width / w->set.size,
                                   .height = w->set.height};
    return CUDA_SUCCESS;
}

SG_API(cuGraphHostNodeGetParams, (CUgraphNode n, CUDA_HOST_NODE_PARAMS *p)) {
    SG_ENTER();
    if (!is_node(n) || n->type != NODE_HOST || p == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    p->fn = n->work->host.fn;
    p->userData = n->work->host.user;
    return CUDA_SUCCESS;
}

SG_API(cuGraphHostNodeSetParams, (CUgraphNode n, const CUDA_HOST_NODE_PARAMS *p)) {
    SG_ENTER();
    if (!is_node(n) || n->type != NODE_HOST || p == NULL || p->fn == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sg_lock();
    n->work->host.fn = p->fn;
    n->work->host.user = p->userData;
    sg_unlock();
    return CUDA_SUCCESS;
}

static CUresult remove_edge(struct sg_node_s *from, struct sg_node_s *to) {
    for (uint32_t i = 0; i < to->needs.count; i++) {
        if (to->needs.nodes[i] == from) {
            struct sg_tips kept = {0};
            for (uint32_t k = 0; k < to->needs.count; k++) {
                if (k != i && !sg_tips_add(&kept, to->needs.nodes[k])) {
                    sg_tips_clear(&kept);
                    return CUDA_ERROR_OUT_OF_MEMORY;
                }
            }
            sg_tips_clear(&to->needs);
            to->needs = kept;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

SG_API(cuGraphRemoveDependencies,
       (CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t count)) {
    SG_ENTER();
    if (!is_graph(g) || (count != 0 && (from == NULL || to == NULL))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult rc = CUDA_SUCCESS;
    sg_lock();
    for (size_t i = 0; i < count && rc == CUDA_SUCCESS; i++) {
        rc = is_node(from[i]) && is_node(to[i]) && to[i]->graph == g ? remove_edge(from[i], to[i])
                                                                     : CUDA_ERROR_INVALID_VALUE;
    }
    sg_unlock();
    return rc;
}

/* The second forms carry data per edge; here every edge is a full dependency: all zero. */
CUresult cuGraphAddDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                size_t count);
CUresult cuGraphGetEdges(CUgraph g, CUgraphNode *from, CUgraphNode *to, size_t *count);
CUresult cuGraphNodeGetDependencies(CUgraphNode n, CUgraphNode *out, size_t *count);
CUresult cuGraphNodeGetDependentNodes(CUgraphNode n, CUgraphNode *out, size_t *count);

struct edge_data {
    unsigned char from_port, to_port, type, reserved[5];
};

static bool is_plain(const struct edge_data *edges, size_t count) {
    for (size_t i = 0; edges != NULL && i < count; i++) {
        if (edges[i].from_port != 0 || edges[i].to_port != 0 || edges[i].type != 0) {
            return false;
        }
    }
    return true;
}

static void clear(struct edge_data *edges, size_t count) {
    for (size_t i = 0; edges != NULL && i < count; i++) {
        edges[i] = (struct edge_data){0};
    }
}

SG_API(cuGraphAddDependencies_v2, (CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                   const struct edge_data *edges, size_t count)) {
    return is_plain(edges, count) ? cuGraphAddDependencies(g, from, to, count)
                                  : CUDA_ERROR_NOT_SUPPORTED;
}

SG_API(cuGraphRemoveDependencies_v2, (CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                      const struct edge_data *edges, size_t count)) {
    return is_plain(edges, count) ? cuGraphRemoveDependencies(g, from, to, count)
                                  : CUDA_ERROR_INVALID_VALUE;
}

SG_API(cuGraphGetEdges_v2,
       (CUgraph g, CUgraphNode *from, CUgraphNode *to, struct edge_data *edges, size_t *count)) {
    size_t room = count != NULL ? *count : 0;
    CUresult rc = cuGraphGetEdges(g, from, to, count);
    if (rc == CUDA_SUCCESS) {
        clear(edges, room < *count ? room : *count);
    }
    return rc;
}

SG_API(cuGraphNodeGetDependencies_v2,
       (CUgraphNode n, CUgraphNode *out, struct edge_data *edges, size_t *count)) {
    CUresult rc = cuGraphNodeGetDependencies(n, out, count);
    if (rc == CUDA_SUCCESS && out != NULL) {
        clear(edges, *count);
    }
    return rc;
}

SG_API(cuGraphNodeGetDependentNodes_v2,
       (CUgraphNode n, CUgraphNode *out, struct edge_data *edges, size_t *count)) {
    CUresult rc = cuGraphNodeGetDependentNodes(n, out, count);
    if (rc == CUDA_SUCCESS && out != NULL) {
        clear(edges, *count);
    }
    return rc;
}

SG_API(cuGraphNodeGetEnabled, (CUgraphExec e, CUgraphNode n, unsigned *enabled)) {
    SG_ENTER();
    if (e == NULL || !is_node(n) || enabled == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *enabled = 1;
    return CUDA_SUCCESS;
}

SG_API(cuGraphGetId, (CUgraph g, unsigned *id)) {
    SG_ENTER();
    if (!is_graph(g) || id == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *id = (unsigned)g->id;
    return CUDA_SUCCESS;
}
