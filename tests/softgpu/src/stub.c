/* Names that are exported but not implemented count themselves in the state file. */
#include "driver.h"

/* Of the generated stubs. */
extern const char *const softgpu_names[];
int softgpu_stub(unsigned index);

int softgpu_stub(unsigned index) {
    if (__atomic_load_n(&sg.initialised, __ATOMIC_ACQUIRE)) {
        sg_count(SOFTGPU_COUNT_STUB, 1);
        sg_state_lock(&sg.node);
        sg_stub_count(sg.node.st, softgpu_names[index]);
        sg_state_unlock(&sg.node);
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}
