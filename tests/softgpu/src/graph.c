/* Graphs: nodes and their order, instantiation, launch. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "user_object.h"

struct sg_exec {
    uint32_t magic;
    struct sg_work **works; /* in an order that respects the dependencies */
    uint32_t count;
    uint64_t flags;
};

bool sg_tips_add(struct sg_tips *t, struct sg_node_s *n) {
    for (uint32_t i = 0; i < t->count; i++) {
        if (t->nodes[i] == n) {
            return true;
        }
    }
    if ((t->count & (t->count - 1)) == 0) { /* room is the next power of two */
        size_t room = t->count == 0 ? 1 : (size_t)t->count * 2;
        struct sg_node_s **p = realloc(t->nodes, room * sizeof(struct sg_node_s *));
        if (p == NULL) {
            return false;
        }
        t->nodes = p;
    }
    t->nodes[t->count++] = n;
    return true;
}

void sg_tips_clear(struct sg_tips *t) {
    free(t->nodes);
    t->nodes = NULL;
    t->count = 0;
}

bool sg_tips_copy(struct sg_tips *to, const struct sg_tips *from) {
    sg_tips_clear(to);
    for (uint32_t i = 0; i < from->count; i++) {
        if (!sg_tips_add(to, from->nodes[i])) {
            return false;
        }
    }
    return true;
}

struct sg_work *sg_work_clone(const struct sg_work *w) {
    struct sg_work *c = sg_work_new(w->kind);
    if (c == NULL) {
        return NULL;
    }
    *c = *w;
    c->next = NULL;
    c->op = SOFTGPU_NONE;
    if (w->kind == SG_WORK_KERNEL && w->kernel.params != NULL) {
        size_t size = w->kernel.spec->param_bytes + 8u;
        c->kernel.params = malloc(size);
        if (c->kernel.params == NULL) {
            free(c);
            return NULL;
        }
        memcpy(c->kernel.params, w->kernel.params, size);
    }
    return c;
}

struct sg_graph *sg_graph_new(void) {
    struct sg_graph *g = sg_object(sizeof(*g), SG_GRAPH);
    if (g != NULL) {
        g->id = ++sg.next_id;
    }
    return g;
}

struct sg_node_s *sg_node_add(struct sg_graph *g, int type, struct sg_work *w,
                              struct sg_node_s *const *needs, size_t count) {
    struct sg_node_s *n = sg_object(sizeof(*n), SG_NODE);
    bool ok = n != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        ok = needs[i] != NULL && needs[i]->magic == SG_NODE && sg_tips_add(&n->needs, needs[i]);
    }
    if (!ok || !sg_tips_add(&g->nodes, n)) {
        if (w != NULL) {
            sg_work_free(w);
        }
        return NULL;
    }
    n->type = type;
    n->graph = g;
    n->work = w;
    return n;
}

static bool is_graph(CUgraph g) {
    return g != NULL && g->magic == SG_GRAPH;
}

SG_API(cuGraphCreate, (CUgraph * out, unsigned flags)) {
    SG_ENTER();
    if (out == NULL || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sg_lock();
    *out = sg_graph_new();
    sg_unlock();
    return *out == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static void destroy_node(struct sg_node_s *n) {
    if (n->work != NULL) {
        sg_work_free(n->work);
        n->work = NULL;
    }
    free(n->params);
    n->params = NULL;
    sg_tips_clear(&n->needs);
    n->magic = SG_DEAD;
}

SG_API(cuGraphDestroy, (CUgraph g)) {
    SG_ENTER();
    if (!is_graph(g)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sg_lock();
    for (uint32_t i = 0; i < g->nodes.count; i++) {
        destroy_node(g->nodes.nodes[i]);
    }
    sg_tips_clear(&g->nodes);
    g->magic = SG_DEAD;
    struct sg_held *left = sg_user_leave(g);
    sg_unlock();
    sg_user_drop(left);
    return CUDA_SUCCESS;
}

static void remove_from(struct sg_tips *t, const struct sg_node_s *n) {
    struct sg_tips kept = {0};
    for (uint32_t i = 0; i < t->count; i++) {
        if (t->nodes[i] != n) {
            (void)sg_tips_add(&kept, t->nodes[i]);
        }
    }
    free(t->nodes);
    *t = kept;
}

SG_API(cuGraphDestroyNode, (CUgraphNode n)) {
    SG_ENTER();
    if (n == NULL || n->magic != SG_NODE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sg_lock();
    struct sg_graph *g = n->graph;
    for (uint32_t i = 0; i < g->nodes.count; i++) {
        remove_from(&g->nodes.nodes[i]->needs, n);
    }
    remove_from(&g->nodes, n);
    destroy_node(n);
    sg_unlock();
    return CUDA_SUCCESS;
}

SG_API(cuGraphClone, (CUgraph * out, CUgraph g)) {
    SG_ENTER();
    if (out == NULL || !is_graph(g)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sg_lock();
    struct sg_graph *c = sg_graph_new();
    bool ok = c != NULL;
    for (uint32_t i = 0; ok && i < g->nodes.count; i++) {
        struct sg_node_s *n = g->nodes.nodes[i];
        struct sg_work *w = n->work == NULL ? NULL : sg_work_clone(n->work);
        struct sg_node_s *m = sg_node_add(c, n->type, w, NULL, 0);
        ok = m != NULL;
        if (ok) {
            m->clone_of = n;
            m->function = n->function;
        }
    }
    for (uint32_t i = 0; ok && i < g->nodes.count; i++) {
        const struct sg_tips *needs = &g->nodes.nodes[i]->needs;
        for (uint32_t k = 0; ok && k < c->nodes.count; k++) {
            for (uint32_t j = 0; ok && j < needs->count; j++) {
                if (c->nodes.nodes[k]->clone_of == needs->nodes[j]) {
                    ok = sg_tips_add(&c->nodes.nodes[i]->needs, c->nodes.nodes[k]);
                }
            }
        }
    }
    ok = ok && sg_user_copy(g, c);
    sg_unlock();
    *out = c;
    return ok ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static bool is_ready(const struct sg_node_s *n) {
    for (uint32_t i = 0; i < n->needs.count; i++) {
        if (!n->needs.nodes[i]->seen) {
            return false;
        }
    }
    return true;
}

/* Appends works in an order that respects the dependencies. Branches run one after the other:
 * a graph is one sequence in its stream here. */
static CUresult order(struct sg_exec *e, const struct sg_graph *g) {
    uint32_t left = g->nodes.count;
    for (uint32_t i = 0; i < left; i++) {
        g->nodes.nodes[i]->seen = false;
    }
    while (left > 0) {
        uint32_t before = left;
        for (uint32_t i = 0; i < g->nodes.count; i++) {
            struct sg_node_s *n = g->nodes.nodes[i];
            if (n->seen || !is_ready(n)) {
                continue;
            }
            n->seen = true;
            left--;
            if (n->work == NULL || n->disabled) {
                continue;
            }
            struct sg_work *w = sg_work_clone(n->work);
            if (w == NULL) {
                return CUDA_ERROR_OUT_OF_MEMORY;
            }
            e->works[e->count++] = w;
        }
        if (left == before) {
            return CUDA_ERROR_INVALID_VALUE; /* a cycle */
        }
    }
    return CUDA_SUCCESS;
}

static void destroy_exec(struct sg_exec *e) {
    for (uint32_t i = 0; i < e->count; i++) {
        sg_work_free(e->works[i]);
    }
    free(e->works);
    e->works = NULL;
    e->count = 0;
    e->magic = SG_DEAD;
}

static CUresult instantiate(CUgraphExec *out, CUgraph g, uint64_t flags) {
    if (out == NULL || !is_graph(g)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if ((flags & ~0xfull) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (flags & 4) { /* for launches from the device */
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    struct sg_exec *e = sg_object(sizeof(*e), SG_EXEC);
    if (e == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sg_lock();
    e->flags = flags;
    e->works = calloc((size_t)g->nodes.count + 1, sizeof(struct sg_work *));
    CUresult rc = e->works == NULL ? CUDA_ERROR_OUT_OF_MEMORY : order(e, g);
    if (rc == CUDA_SUCCESS && !sg_user_copy(g, e)) {
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct sg_held *left = NULL;
    if (rc == CUDA_SUCCESS) {
        *out = e;
    } else {
        destroy_exec(e);
        left = sg_user_leave(e);
    }
    sg_unlock();
    sg_user_drop(left);
    return rc;
}

SG_API(cuGraphInstantiate_v2,
       (CUgraphExec * out, CUgraph g, CUgraphNode *bad, char *log, size_t log_size)) {
    SG_ENTER();
    if (bad != NULL) {
        *bad = NULL;
    }
    if (log != NULL && log_size > 0) {
        *log = '\0';
    }
    return instantiate(out, g, 0);
}

SG_API(cuGraphInstantiate,
       (CUgraphExec * out, CUgraph g, CUgraphNode *bad, char *log, size_t log_size)) {
    return cuGraphInstantiate_v2(out, g, bad, log, log_size);
}

SG_API(cuGraphInstantiateWithFlags, (CUgraphExec * out, CUgraph g, unsigned long long flags)) {
    SG_ENTER();
    return instantiate(out, g, flags);
}

SG_TWO_FORMS(cuGraphInstantiateWithParams, _ptsz,
             (CUgraphExec * out, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p), (out, g, p),
             (out, g, p)) {
    SG_ENTER();
    if (p == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult rc = instantiate(out, g, p->flags);
    p->hErrNode_out = NULL;
    p->result_out = rc == CUDA_SUCCESS ? 0 : 1;
    return rc;
}

SG_API(cuGraphExecGetFlags, (CUgraphExec e, cuuint64_t *flags)) {
    SG_ENTER();
    if (e == NULL || e->magic != SG_EXEC || flags == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = e->flags;
    return CUDA_SUCCESS;
}

SG_API(cuGraphExecDestroy, (CUgraphExec e)) {
    SG_ENTER();
    if (e == NULL || e->magic != SG_EXEC) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sg_lock();
    destroy_exec(e);
    struct sg_held *left = sg_user_leave(e);
    sg_unlock();
    sg_user_drop(left);
    return CUDA_SUCCESS;
}

static CUresult launch(struct sg_ctx *ctx, struct sg_exec *e, CUstream h) {
    struct sg_stream *s = sg_stream_get(ctx, h);
    if (s == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    CUresult rc = CUDA_SUCCESS;
    for (uint32_t i = 0; i < e->count && rc == CUDA_SUCCESS; i++) {
        struct sg_work *w = sg_work_clone(e->works[i]);
        rc = w == NULL ? CUDA_ERROR_OUT_OF_MEMORY : sg_submit(s, w);
    }
    return rc;
}

SG_TWO_FORMS(cuGraphLaunch, _ptsz, (CUgraphExec e, CUstream h), (e, h), (e, SG_PER_THREAD(h))) {
    SG_ENTER_CTX(ctx);
    uint64_t began = sg.null_profile ? 0 : sg_monotonic_ns();
    if (e == NULL || e->magic != SG_EXEC) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sg_count(SOFTGPU_COUNT_GRAPH, 1);
    sg_lock();
    CUresult rc = launch(ctx, e, h);
    sg_unlock();
    if (began != 0) {
        const struct softgpu_header *hd = &sg.node.st->header;
        sg_spin_until(began + (uint64_t)(hd->launch_ns / hd->speed));
    }
    return rc;
}

SG_TWO_FORMS(cuGraphUpload, _ptsz, (CUgraphExec e, CUstream h), (e, h), (e, SG_PER_THREAD(h))) {
    SG_ENTER_CTX(ctx);
    (void)ctx;
    (void)h; /* nothing is kept on the device that would have to be brought there */
    return e == NULL || e->magic != SG_EXEC ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* Changing an instantiated graph is refused, as a driver does for a change it cannot make: the
 * caller instantiates anew. */
SG_API(cuGraphExecUpdate, (CUgraphExec e, CUgraph g, CUgraphNode *bad, int *result)) {
    SG_ENTER();
    if (e == NULL || e->magic != SG_EXEC || !is_graph(g)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (bad != NULL) {
        *bad = NULL;
    }
    if (result != NULL) {
        *result = 1; /* an error without a nearer reason */
    }
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

struct update_result {
    int result;
    CUgraphNode node;
    CUgraphNode from;
};

SG_API(cuGraphExecUpdate_v2, (CUgraphExec e, CUgraph g, struct update_result *out)) {
    SG_ENTER();
    if (e == NULL || e->magic != SG_EXEC || !is_graph(g) || out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = (struct update_result){.result = 1};
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}
