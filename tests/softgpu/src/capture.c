#include "driver.h"
CUresult sg_capture_unsafe(void) {
    return CUDA_SUCCESS;
}
CUresult sg_capture_refuse(struct sg_stream *s) {
    (void)s;
    return CUDA_SUCCESS;
}
CUresult sg_capture_work(struct sg_stream *s, struct sg_work *w) {
    (void)s;
    sg_work_free(w);
    return 801;
}
CUresult sg_capture_record(struct sg_stream *s, struct sg_event *ev) {
    (void)s;
    (void)ev;
    return 801;
}
CUresult sg_capture_wait(struct sg_stream *s, struct sg_event *ev) {
    (void)s;
    (void)ev;
    return 801;
}
