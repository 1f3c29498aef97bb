/* User objects live as long as somebody holds a reference: the program, a graph, a clone, an
 * executable. The last one out runs the program's function, once. */
#define _GNU_SOURCE
#include "api.h"
#include "check.h"

typedef struct sg_user *CUuserObject;

CUresult cuUserObjectCreate(CUuserObject *out, void *ptr, CUhostFn destroy, unsigned refs,
                            unsigned flags);
CUresult cuUserObjectRetain(CUuserObject o, unsigned count);
CUresult cuUserObjectRelease(CUuserObject o, unsigned count);
CUresult cuGraphRetainUserObject(CUgraph g, CUuserObject o, unsigned count, unsigned flags);
CUresult cuGraphReleaseUserObject(CUgraph g, CUuserObject o, unsigned count);
CUresult cuGraphClone(CUgraph *out, CUgraph g);
CUresult cuGraphCreate(CUgraph *out, unsigned flags);
CUresult cuGraphDestroy(CUgraph g);
CUresult cuGraphExecDestroy(CUgraphExec e);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph g, unsigned long long flags);

enum { NO_DESTRUCTOR_SYNC = 1, MOVE = 1 };

static int ends;

static void end(void *user) {
    CHECK(user == &ends);
    ends++;
}

static CUuserObject create(unsigned refs) {
    CUuserObject o = NULL;
    ends = 0;
    OK(cuUserObjectCreate(&o, &ends, end, refs, NO_DESTRUCTOR_SYNC));
    return o;
}

static void the_last_reference_ends_it(void) {
    CUuserObject o = create(2);
    OK(cuUserObjectRetain(o, 1));
    OK(cuUserObjectRelease(o, 2));
    CHECK_EQ(ends, 0);
    OK(cuUserObjectRelease(o, 1));
    CHECK_EQ(ends, 1);
    CHECK_EQ(cuUserObjectRelease(o, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(ends, 1);
}

static void graphs_hold_it(void) {
    CUuserObject o = create(1);
    CUgraph g;
    CUgraph clone;
    CUgraphExec exec;
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphRetainUserObject(g, o, 1, MOVE)); /* the program's only reference */
    OK(cuGraphClone(&clone, g));
    OK(cuGraphInstantiateWithFlags(&exec, g, 0));
    OK(cuGraphDestroy(g));
    OK(cuGraphDestroy(clone));
    CHECK_EQ(ends, 0);
    OK(cuGraphExecDestroy(exec));
    CHECK_EQ(ends, 1);
}

static void a_graph_gives_it_back(void) {
    CUuserObject o = create(1);
    CUgraph g;
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphRetainUserObject(g, o, 2, 0));
    OK(cuUserObjectRelease(o, 1));
    OK(cuGraphReleaseUserObject(g, o, 1));
    CHECK_EQ(ends, 0);
    OK(cuGraphReleaseUserObject(g, o, 1));
    CHECK_EQ(ends, 1);
    CHECK_EQ(cuGraphReleaseUserObject(g, o, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphDestroy(g));
    CHECK_EQ(ends, 1);
}

static void wrong_use_is_refused(void) {
    CUuserObject o = NULL;
    CHECK_EQ(cuUserObjectCreate(&o, &ends, end, 1, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuUserObjectCreate(&o, &ends, NULL, 1, NO_DESTRUCTOR_SYNC), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuUserObjectCreate(&o, &ends, end, 0, NO_DESTRUCTOR_SYNC), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuUserObjectRetain(NULL, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuGraphRetainUserObject(NULL, NULL, 1, 0), CUDA_ERROR_INVALID_VALUE);
}

int main(void) {
    check_node("H100", "real-like");
    OK(cuInit(0));
    RUN("the last reference ends it", the_last_reference_ends_it);
    RUN("graphs hold it", graphs_hold_it);
    RUN("a graph gives it back", a_graph_gives_it_back);
    RUN("wrong use is refused", wrong_use_is_refused);
    return finish("test_user_object");
}
