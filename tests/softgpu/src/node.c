/* Nodes made by hand, and what can be asked of a graph's nodes. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"

enum { NODE_KERNEL = 0, NODE_MEMCPY = 1, NODE_MEMSET = 2, NODE_HOST = 3, NODE_EMPTY = 5 };

CUresult sg_graph_add(CUgraphNode *out, CUgraph g, const CUgraphNode *needs, size_t count, int type,
                      struct sg_work *w) {
    if (out == NULL || g == NULL || g->magic != SG_GRAPH || (count != 0 && needs == NULL)) {
        if (w != NULL) {
            sg_work_free(w);
        }
        return CUDA_ERROR_INVALID_VALUE;
    }
    sg_lock();
    *out = sg_node_add(g, type, w, needs, count);
    sg_unlock();
    return *out == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

SG_API(cuGraphAddEmptyNode,
       (CUgraphNode * out, CUgraph g, const CUgraphNode *needs, size_t count)) {
    SG_ENTER();
    return sg_graph_add(out, g, needs, count, NODE_EMPTY, NULL);
}

CUresult sg_kernel_work(const CUDA_KERNEL_NODE_PARAMS *p, CUfunction h, struct sg_work **out) {
    struct sg_function *f;
    CUresult rc = sg_function_of(h, &f);
    if (rc != CUDA_SUCCESS) {
        return rc;
    }
    if (p->gridDimX == 0 || p->gridDimY == 0 || p->gridDimZ == 0 || p->blockDimX == 0 ||
        p->blockDimY == 0 || p->blockDimZ == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sg_work *w = sg_work_new(SG_WORK_KERNEL);
    if (w == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    w->kernel.spec = f->spec;
    w->kernel.grid[0] = p->gridDimX;
    w->kernel.grid[1] = p->gridDimY;
    w->kernel.grid[2] = p->gridDimZ;
    w->kernel.block[0] = p->blockDimX;
    w->kernel.block[1] = p->blockDimY;
    w->kernel.block[2] = p->blockDimZ;
    w->kernel.shared = p->sharedMemBytes;
    rc = sg_kernel_params(w, p->kernelParams, p->extra);
    if (rc != CUDA_SUCCESS) {
        sg_work_free(w);
        return rc;
    }
    *out = w;
    return CUDA_SUCCESS;
}

static CUresult add_kernel(CUgraphNode *out, CUgraph g, const CUgraphNode *needs, size_t count,
                           const CUDA_KERNEL_NODE_PARAMS *p, CUfunction f) {
    struct sg_work *w;
    CUresult rc = sg_kernel_work(p, f, &w);
    if (rc == CUDA_SUCCESS) {
        rc = sg_graph_add(out, g, needs, count, NODE_KERNEL, w);
    }
    if (rc == CUDA_SUCCESS) {
        (*out)->function = f;
    }
    return rc;
}

SG_API(cuGraphAddKernelNode, (CUgraphNode * out, CUgraph g, const CUgraphNode *needs, size_t count,
                              const CUDA_KERNEL_NODE_PARAMS *p)) {
    SG_ENTER();
    return p == NULL ? CUDA_ERROR_INVALID_VALUE : add_kernel(out, g, needs, count, p, p->func);
}

SG_API(cuGraphAddKernelNode_v2, (CUgraphNode * out, CUgraph g, const CUgraphNode *needs,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS *p)) {
    SG_ENTER();
    return p == NULL ? CUDA_ERROR_INVALID_VALUE
                     : add_kernel(out, g, needs, count, p, p->func != NULL ? p->func : p->kern);
}

static CUresult kernel_params(CUgraphNode n, CUDA_KERNEL_NODE_PARAMS *p) {
    if (n == NULL || n->magic != SG_NODE || n->type != NODE_KERNEL || p == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const struct sg_work *w = n->work;
    const struct sg_spec *spec = w->kernel.spec;
    sg_lock();
    if (n->params == NULL && w->kernel.params != NULL) {
        n->params = calloc(spec->param_count + 1u, sizeof(void *));
        for (uint32_t i = 0; n->params != NULL && i < spec->param_count; i++) {
            n->params[i] = w->kernel.params + spec->param_offset[i];
        }
    }
    sg_unlock();
    p->func = n->function;
    p->gridDimX = w->kernel.grid[0];
    p->gridDimY = w->kernel.grid[1];
    p->gridDimZ = w->kernel.grid[2];
    p->blockDimX = w->kernel.block[0];
    p->blockDimY = w->kernel.block[1];
    p->blockDimZ = w->kernel.block[2];
    p->sharedMemBytes = w->kernel.shared;
    p->kernelParams = n->params;
    p->extra = NULL;
    return CUDA_SUCCESS;
}

SG_API(cuGraphKernelNodeGetParams, (CUgraphNode n, CUDA_KERNEL_NODE_PARAMS *p)) {
    SG_ENTER();
    return kernel_params(n, p);
}

SG_API(cuGraphKernelNodeGetParams_v2, (CUgraphNode n, CUDA_KERNEL_NODE_PARAMS *p)) {
    SG_ENTER();
    CUresult rc = kernel_params(n, p);
    if (rc == CUDA_SUCCESS) {
        p->kern = NULL;
        p->ctx = NULL;
    }
    return rc;
}

SG_API(cuGraphAddMemsetNode, (CUgraphNode * out, CUgraph g, const CUgraphNode *needs, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx)) {
    SG_ENTER();
    if (p == NULL || !sg_ctx_valid(ctx) ||
        (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sg_work *w = sg_work_new(SG_WORK_SET);
    if (w == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    w->set.to = (struct sg_plane){.base = (unsigned char *)(uintptr_t)p->dst, .pitch = p->pitch};
    w->set.width = p->width * p->elementSize;
    w->set.height = p->height;
    w->set.value = p->value;
    w->set.size = p->elementSize;
    return sg_graph_add(out, g, needs, count, NODE_MEMSET, w);
}

SG_API(cuGraphAddHostNode, (CUgraphNode * out, CUgraph g, const CUgraphNode *needs, size_t count,
                            const CUDA_HOST_NODE_PARAMS *p)) {
    SG_ENTER();
    if (p == NULL || p->fn == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sg_work *w = sg_work_new(SG_WORK_HOST);
    if (w == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    w->host.fn = p->fn;
    w->host.user = p->userData;
    return sg_graph_add(out, g, needs, count, NODE_HOST, w);
}

SG_API(cuGraphNodeGetType, (CUgraphNode n, int *type)) {
    SG_ENTER();
    if (n == NULL || n->magic != SG_NODE || type == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *type = n->type;
    return CUDA_SUCCESS;
}

/* Copies out as many as fit; the rest is NULL, and *count says how many there are. */
static CUresult give(const struct sg_tips *t, CUgraphNode *out, size_t *count) {
    if (count == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; out != NULL && i < *count; i++) {
        out[i] = i < t->count ? t->nodes[i] : NULL;
    }
    if (out == NULL || *count > t->count) {
        *count = t->count;
    }
    return CUDA_SUCCESS;
}

SG_API(cuGraphGetNodes, (CUgraph g, CUgraphNode *out, size_t *count)) {
    SG_ENTER();
    return g == NULL || g->magic != SG_GRAPH ? CUDA_ERROR_INVALID_VALUE
                                             : give(&g->nodes, out, count);
}

SG_API(cuGraphGetRootNodes, (CUgraph g, CUgraphNode *out, size_t *count)) {
    SG_ENTER();
    if (g == NULL || g->magic != SG_GRAPH) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sg_tips roots = {0};
    for (uint32_t i = 0; i < g->nodes.count; i++) {
        if (g->nodes.nodes[i]->needs.count == 0) {
            (void)sg_tips_add(&roots, g->nodes.nodes[i]);
        }
    }
    CUresult rc = give(&roots, out, count);
    sg_tips_clear(&roots);
    return rc;
}

SG_API(cuGraphGetEdges, (CUgraph g, CUgraphNode *from, CUgraphNode *to, size_t *count)) {
    SG_ENTER();
    if (g == NULL || g->magic != SG_GRAPH || count == NULL || (from == NULL) != (to == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    size_t n = 0;
    for (uint32_t i = 0; i < g->nodes.count; i++) {
        const struct sg_tips *needs = &g->nodes.nodes[i]->needs;
        for (uint32_t k = 0; k < needs->count; k++, n++) {
            if (from != NULL && n < *count) {
                from[n] = needs->nodes[k];
                to[n] = g->nodes.nodes[i];
            }
        }
    }
    *count = n;
    return CUDA_SUCCESS;
}

SG_API(cuGraphNodeGetDependencies, (CUgraphNode n, CUgraphNode *out, size_t *count)) {
    SG_ENTER();
    return n == NULL || n->magic != SG_NODE ? CUDA_ERROR_INVALID_VALUE
                                            : give(&n->needs, out, count);
}

SG_API(cuGraphNodeGetDependentNodes, (CUgraphNode n, CUgraphNode *out, size_t *count)) {
    SG_ENTER();
    if (n == NULL || n->magic != SG_NODE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sg_tips users = {0};
    for (uint32_t i = 0; i < n->graph->nodes.count; i++) {
        struct sg_node_s *m = n->graph->nodes.nodes[i];
        for (uint32_t k = 0; k < m->needs.count; k++) {
            if (m->needs.nodes[k] == n) {
                (void)sg_tips_add(&users, m);
            }
        }
    }
    CUresult rc = give(&users, out, count);
    sg_tips_clear(&users);
    return rc;
}

SG_API(cuGraphAddDependencies,
       (CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t count)) {
    SG_ENTER();
    if (g == NULL || g->magic != SG_GRAPH || (count != 0 && (from == NULL || to == NULL))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult rc = CUDA_SUCCESS;
    sg_lock();
    for (size_t i = 0; i < count && rc == CUDA_SUCCESS; i++) {
        if (from[i] == NULL || to[i] == NULL || from[i]->graph != g || to[i]->graph != g ||
            !sg_tips_add(&to[i]->needs, from[i])) {
            rc = CUDA_ERROR_INVALID_VALUE;
        }
    }
    sg_unlock();
    return rc;
}

SG_API(cuGraphNodeFindInClone, (CUgraphNode * out, CUgraphNode original, CUgraph clone)) {
    SG_ENTER();
    if (out == NULL || original == NULL || clone == NULL || clone->magic != SG_GRAPH) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (uint32_t i = 0; i < clone->nodes.count; i++) {
        if (clone->nodes.nodes[i]->clone_of == original) {
            *out = clone->nodes.nodes[i];
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}
