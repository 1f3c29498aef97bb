/* The facts that the device model has to reproduce, each as a script in simulated time. */
#define _GNU_SOURCE
#include "replay.h"

#include "check.h"
#include "engine.h"
#include "state.h"

static char output[8192];

static void replay(const char *script) {
    FILE *in = fmemopen((void *)(uintptr_t)script, strlen(script), "r");
    memset(output, 0, sizeof(output));
    FILE *out = fmemopen(output, sizeof(output) - 1, "w");
    OK(replay_script(in, out, stderr));
    fclose(in);
    fclose(out);
}

/* When the operation was done, from the output of the last replay; -1 if it was not. */
static long long end_of(const char *label) {
    char want[40];
    long long start;
    long long end;
    snprintf(want, sizeof(want), "%s ", label);
    for (const char *p = output; p != NULL && *p != '\0'; p = strchr(p, '\n'), p += p != NULL) {
        if (strncmp(p, want, strlen(want)) == 0 &&
            sscanf(p + strlen(want), "%lld %lld", &start, &end) == 2) {
            return end;
        }
    }
    return -1;
}

static void near(const char *label, double want) {
    double got = (double)end_of(label);
    if (got < want * 0.999 - 2 || got > want * 1.001 + 2) {
        fprintf(stderr, "%s: %s is done at %.0f, want %.0f\n", check_case, label, got, want);
        check_failures++;
    }
}

#define ONE_CONTEXT                                                                                \
    "device H100\ncontext c\n"                                                                     \
    "stream s1 c\nstream s2 c\nstream high c priority=-5\n"

static void two_kernels_of_as_many_blocks_as_sms_run_together(void) {
    replay(ONE_CONTEXT "0 s1 a kernel grid=132 block=1024 time=100000\n"
                       "0 s2 b kernel grid=132 block=1024 time=100000\n");
    near("a", 100000);
    near("b", 100000);
}

static void with_twice_the_blocks_they_take_the_sum(void) {
    replay(ONE_CONTEXT "0 s1 a kernel grid=264 block=1024 time=100000\n"
                       "0 s2 b kernel grid=264 block=1024 time=100000\n");
    near("a", 100000);
    near("b", 200000);
}

static void two_one_block_kernels_take_the_time_of_one(void) {
    replay(ONE_CONTEXT "0 s1 a kernel grid=1 block=256 time=50000\n"
                       "0 s2 b kernel grid=1 block=256 time=50000\n");
    near("a", 50000);
    near("b", 50000);
}

static void one_stream_is_in_order(void) {
    replay(ONE_CONTEXT "0 s1 a kernel grid=1 time=50000\n"
                       "0 s1 b kernel grid=1 time=50000\n"
                       "0 s1 c mark\n");
    near("a", 50000);
    near("b", 100000);
    near("c", 100000);
}

static void half_of_82_sms_is_40(void) {
    CHECK_EQ(sg_mps_cap(82, 50), 40);
    CHECK_EQ(sg_mps_cap(132, 100), 132);
    CHECK_EQ(sg_mps_cap(132, 1), 2);
}

static void a_late_comer_gets_what_is_left(void) {
    /* 100 of 132 SMs are taken; 32 of 64 are left until the first is done, then all. */
    replay(ONE_CONTEXT "0 s1 a kernel grid=200 block=1024 time=100000\n"
                       "0 s2 b kernel grid=128 block=1024 time=100000\n");
    near("a", 100000);
    near("b", 150000);
}

static void a_high_priority_kernel_waits_for_one_wave_at_most(void) {
    /* Ten waves of 10 us. The high one comes at 15 us, has the SMs at 20, is done at 30. */
    replay(ONE_CONTEXT "0 s1 low kernel grid=2640 block=1024 time=100000\n"
                       "15000 high hp kernel grid=264 block=1024 time=10000\n");
    near("hp", 30000);
    near("low", 110000);
}

static void equal_priority_waits_for_the_end(void) {
    replay(ONE_CONTEXT "0 s1 a kernel grid=2640 block=1024 time=100000\n"
                       "15000 s2 b kernel grid=264 block=1024 time=10000\n");
    near("a", 100000);
    near("b", 110000);
}

static void the_memory_bound_part_slows(void) {
    /* M = 0.9 + 0.9 = 1.8; each runs at 1 / (0.1 + 0.9 * 1.8). */
    replay(ONE_CONTEXT "0 s1 a kernel grid=132 block=1024 time=100000 dram=0.9\n"
                       "0 s2 b kernel grid=132 block=1024 time=100000 dram=0.9\n");
    near("a", 172000);
    near("b", 172000);
}

#define TWO_CONTEXTS                                                                               \
    "device H100\ncontext c1\ncontext c2\n"                                                        \
    "stream s1 c1\nstream s2 c2\n"

static void without_mps_a_block_of_another_process_waits_for_the_quantum(void) {
    replay(TWO_CONTEXTS "0 s1 train kernel grid=2640 block=1024 time=10000000\n"
                        "500000 s2 one kernel grid=1 block=32 time=10000\n");
    near("one", 2000000 + 100000 + 10000);
    near("train", 10000000 + 100000 + 10000 + 100000);
}

static void a_context_without_work_yields_at_once(void) {
    replay(TWO_CONTEXTS "0 s1 a kernel grid=1 block=32 time=50000\n"
                        "10000 s2 b kernel grid=1 block=32 time=50000\n");
    near("a", 50000);
    near("b", 50000 + 100000 + 50000);
}

static void contexts_take_turns(void) {
    replay(TWO_CONTEXTS "0 s1 a kernel grid=264 block=1024 time=3000000\n"
                        "0 s2 b kernel grid=264 block=1024 time=3000000\n");
    /* a 0..2.0, b 2.1..4.1, a 4.2..5.2, b 5.3..6.3 ms */
    near("a", 5200000);
    near("b", 6300000);
}

static void with_mps_contexts_run_together(void) {
    replay("device H100\ncontext c1 mps=100\ncontext c2 mps=100\nstream s1 c1\nstream s2 c2\n"
           "0 s1 a kernel grid=132 block=1024 time=100000\n"
           "0 s2 b kernel grid=132 block=1024 time=100000\n");
    near("a", 100000);
    near("b", 100000);
}

static void a_percentage_caps_the_sms_of_a_client(void) {
    replay("device H100\ncontext c1 mps=50\nstream s1 c1\nstream s2 c1\n"
           "0 s1 a kernel grid=264 block=1024 time=100000\n");
    near("a", 200000);
    replay("device H100\ncontext c1 mps=50\ncontext c2 mps=50\nstream s1 c1\nstream s2 c2\n"
           "0 s1 a kernel grid=264 block=1024 time=100000\n"
           "0 s2 b kernel grid=264 block=1024 time=100000\n");
    near("a", 200000);
    near("b", 200000);
}

static void copies_queue_per_direction_beside_kernels(void) {
    replay(ONE_CONTEXT "0 s1 k kernel grid=264 block=1024 time=1000000\n"
                       "0 s2 up copy queue=h2d bytes=55000000\n"
                       "0 high down copy queue=d2h bytes=55000000\n"
                       "0 high up2 copy queue=h2d bytes=55000000\n");
    double one = (double)end_of("up");
    CHECK(one > 100000);
    near("k", 1000000);
    near("down", one);
    near("up2", 2 * one);
}

static void waits_reach_across_streams(void) {
    replay(ONE_CONTEXT "0 s1 a kernel grid=1 block=32 time=70000\n"
                       "0 s2 w wait for=a\n"
                       "0 s2 b kernel grid=1 block=32 time=10000\n");
    near("w", 70000);
    near("b", 80000);
}

static void the_legacy_stream_is_a_barrier(void) {
    replay("device H100\ncontext c\nstream s1 c default=0\nstream s2 c default=0\n"
           "stream legacy c default=1\nstream free c\n"
           "0 s1 a kernel grid=1 block=32 time=50000\n"
           "0 legacy l kernel grid=1 block=32 time=50000\n"
           "0 s2 b kernel grid=1 block=32 time=50000\n"
           "0 free f kernel grid=1 block=32 time=50000\n");
    near("a", 50000);
    near("l", 100000);
    near("b", 150000);
    near("f", 50000);
}

static void registers_and_shared_memory_bound_the_blocks(void) {
    struct sg_sm_limits sm = {.threads = 2048, .blocks = 32, .registers = 65536, .smem = 233472};
    struct sg_footprint fp = {.blocks = 1, .threads = 256};
    CHECK_EQ(sg_blocks_per_sm(&sm, &fp), 8);
    fp.registers = 64;
    CHECK_EQ(sg_blocks_per_sm(&sm, &fp), 4);
    fp.registers = 0;
    fp.smem = 100 * 1024;
    CHECK_EQ(sg_blocks_per_sm(&sm, &fp), 2);
    fp.threads = 4096;
    CHECK_EQ(sg_blocks_per_sm(&sm, &fp), 0);
}

/* Stream i is of unit i; stream 0 has a kernel, the others wait for its end. */
static struct softgpu_state *two_units_that_wait_for_a_third(void) {
    struct softgpu_state *st = calloc(1, sizeof(*st));
    OK(st == NULL);
    OK(sg_state_fill(st, "3xA30", 0, 0));
    st->header.proc_high = 1;
    st->header.context_high = 3;
    st->header.stream_high = 3;
    st->procs[0].state = SOFTGPU_SLOT_USED;
    st->procs[0].done_head = SOFTGPU_NONE;
    st->procs[0].done_tail = SOFTGPU_NONE;
    for (uint32_t i = 0; i < 3; i++) {
        st->contexts[i] = (struct softgpu_context){
            .state = SOFTGPU_SLOT_USED, .unit = i, .sm_cap = 56, .legacy_stream = SOFTGPU_NONE};
        st->streams[i] = (struct softgpu_stream){.state = SOFTGPU_SLOT_USED,
                                                 .context = i,
                                                 .unit = i,
                                                 .flags = SOFTGPU_STREAM_NONBLOCKING,
                                                 .head = SOFTGPU_NONE,
                                                 .tail = SOFTGPU_NONE,
                                                 .watch_unit = SOFTGPU_NONE};
        uint32_t o = sg_op_take(st);
        struct softgpu_op *op = &st->ops[o];
        op->kind = i == 0 ? SOFTGPU_OP_KERNEL : SOFTGPU_OP_WAIT;
        op->stream = i;
        op->context = i;
        op->unit = i;
        op->work_ns = i == 0 ? 1000 : 0;
        op->need = 1;
        op->waves = 1;
        op->want = 1;
        op->dep_pos = 1;
        sg_engine_submit(st, o, 0);
    }
    return st;
}

static void every_unit_that_waits_for_a_stream_is_told(void) {
    struct softgpu_state *st = two_units_that_wait_for_a_third();
    sg_engine_advance_all(st, 999);
    CHECK_EQ(st->streams[1].done_pos + st->streams[2].done_pos, 0);
    sg_engine_advance_all(st, 1001);
    CHECK_EQ(st->streams[0].done_pos, 1);
    CHECK_EQ(st->streams[1].done_pos, 1);
    CHECK_EQ(st->streams[2].done_pos, 1);
    free(st);
}

static void the_end_of_a_stream_ends_the_waits_of_other_units(void) {
    struct softgpu_state *st = two_units_that_wait_for_a_third();
    sg_engine_drop_stream(st, 0);
    sg_engine_advance_all(st, 500);
    CHECK_EQ(st->streams[1].done_pos, 1);
    CHECK_EQ(st->streams[2].done_pos, 1);
    free(st);
}

int main(void) {
    RUN("two kernels of S blocks run together", two_kernels_of_as_many_blocks_as_sms_run_together);
    RUN("with 2 S blocks they take the sum", with_twice_the_blocks_they_take_the_sum);
    RUN("two one-block kernels take the time of one", two_one_block_kernels_take_the_time_of_one);
    RUN("one stream is in order", one_stream_is_in_order);
    RUN("half of 82 SMs is 40", half_of_82_sms_is_40);
    RUN("a late-comer gets what is left", a_late_comer_gets_what_is_left);
    RUN("a high-priority kernel waits for one wave",
        a_high_priority_kernel_waits_for_one_wave_at_most);
    RUN("equal priority waits for the end", equal_priority_waits_for_the_end);
    RUN("the memory-bound part slows", the_memory_bound_part_slows);
    RUN("without MPS another process waits for the quantum",
        without_mps_a_block_of_another_process_waits_for_the_quantum);
    RUN("a context without work yields at once", a_context_without_work_yields_at_once);
    RUN("contexts take turns", contexts_take_turns);
    RUN("with MPS contexts run together", with_mps_contexts_run_together);
    RUN("a percentage caps the SMs of a client", a_percentage_caps_the_sms_of_a_client);
    RUN("copies queue per direction", copies_queue_per_direction_beside_kernels);
    RUN("waits reach across streams", waits_reach_across_streams);
    RUN("every unit that waits for a stream is told", every_unit_that_waits_for_a_stream_is_told);
    RUN("the end of a stream ends the waits of other units",
        the_end_of_a_stream_ends_the_waits_of_other_units);
    RUN("the legacy stream is a barrier", the_legacy_stream_is_a_barrier);
    RUN("registers and shared memory bound the blocks",
        registers_and_shared_memory_bound_the_blocks);
    return finish("test_engine");
}
