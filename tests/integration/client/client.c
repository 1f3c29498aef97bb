/*
 * A GPU program on a leash: reads one command a line on standard input and answers each with one
 * line, so that a test decides what happens when. Of Heddle it knows the header for yield points.
 *
 *   init                  cuInit                              ok
 *   device N              primary context of ordinal N        ok
 *   uuid N                                                    ok HEX
 *   stream                create a stream, make it current    ok INDEX
 *   use INDEX             make an earlier stream current      ok
 *   launch NS [COUNT]     COUNT kernels of NS each            ok WAITED_NS
 *   sync | query | ctxsync | destroy                          ok [busy]
 *   record | waitevent | eventsync                            ok
 *   capture MODE NS COUNT capture COUNT kernels into a graph  ok NODES
 *   graph                 launch the captured graph           ok WAITED_NS
 *   alloc BYTES           ok INDEX      free INDEX | freeptr VALUE    ok
 *   info                                                      ok FREE TOTAL
 *   count                 kernels that really ran             ok N
 *   yield NS              a yield point                       ok WAITED_NS
 *   wanted                                                    ok 0 | ok 1
 *   loop NS SYNC_EVERY    launch for ever on a second thread  ok
 *   pace NS SYNC_EVERY IDLE_US  the same, idle after each sync ok
 *   looped                launches of that thread so far      ok N MAX_WAITED_NS
 *   endloop                                                   ok N
 *   serve ROUNDS IDLE_US  launch the captured graph, idle     ok P50_NS P99_NS MAX_NS
 *                         before each; latency in device time
 *   fork                  go on as the child; parent waits    ok
 *   exit CODE
 *
 * And what a client does that means harm (hostile.c), until peace:
 *
 *   scribble 0|1 SEED     write noise over the own segment: everything, or what looks possible   ok
 *   forge NS              say of every launch that it took NS                                    ok
 *   flood THREADS NS      launch kernels of NS as fast as can be, on a stream for each thread    ok
 *   flooded               how many of them so far                                                ok N
 *   stall                 launch on a stream that waits for ever                                 ok
 *   peace                                                                                        ok
 *
 * A driver error answers "cuda CODE", a wrong command "what COMMAND".
 */
#include "driver.h"
#include "hostile.h"
#include "serve.h"

#include <heddle/yield.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STREAMS_MAX = 64, BLOCKS_MAX = 1024, LINE_MAX_BYTES = 256, COUNT_MAX = 100000000 };

/* Knuth's multiplier: a lost, doubled or misplaced kernel leaves another state. */
static const uint64_t FOLD = 6364136223846793005U;

static const char PTX[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
                          "// softgpu.kernel tick busy time_ns=param:1 dram=0.20\n"
                          ".visible .entry tick(.param .u64 state, .param .u64 time_ns,\n"
                          "    .param .u64 block_ns, .param .u64 tag)\n"
                          "{\n"
                          "    .reg .b64 %rd<4>;\n"
                          "    ld.param.u64 %rd1, [state];\n"
                          "    cvta.to.global.u64 %rd1, %rd1;\n"
                          "    ld.param.u64 %rd2, [tag];\n"
                          "    ld.global.u64 %rd3, [%rd1];\n"
                          "    mad.lo.u64 %rd3, %rd3, 6364136223846793005, %rd2;\n"
                          "    st.global.u64 [%rd1], %rd3;\n"
                          "    ret;\n"
                          "}\n";

struct looper {
    uint64_t time_ns;
    uint64_t sync_every;
    uint64_t idle_us;
    cu_context context;
    cu_stream stream;
    atomic_bool stop;
    atomic_uint_fast64_t launches;
    atomic_uint_fast64_t longest_ns;
    atomic_int error;
};

static struct client_driver cu;
static cu_context context;
static cu_function tick;
static cu_pointer state;
static cu_stream streams[STREAMS_MAX];
static size_t stream_count, stream_now;
static cu_pointer blocks[BLOCKS_MAX];
static size_t block_count;
static cu_event event;
static cu_graph_exec graph;
static struct looper looper;
static pthread_t loop_thread;
static bool looping;

static uint64_t now_ns(void) {
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static cu_stream current_stream(void) {
    return stream_count == 0 ? NULL : streams[stream_now];
}

static cu_result launch_tick(cu_stream stream, uint64_t time_ns) {
    uint64_t tag = 1;
    void *args[] = {&state, &time_ns, &time_ns, &tag};

    return cu.launch(tick, 1, 1, 1, 32, 1, 1, 0, stream, args, NULL);
}

static void *run_loop(void *unused) {
    struct timespec idle = {.tv_sec = (time_t)(looper.idle_us / 1000000U),
                            .tv_nsec = (long)(looper.idle_us % 1000000U) * 1000};
    cu_result rc = cu.context_set(looper.context);

    (void)unused;
    for (uint64_t n = 1; rc == CU_OK && !atomic_load(&looper.stop); n++) {
        uint64_t before = now_ns();

        rc = launch_tick(looper.stream, looper.time_ns);
        uint64_t waited = now_ns() - before;
        if (waited > atomic_load(&looper.longest_ns)) {
            atomic_store(&looper.longest_ns, waited);
        }
        atomic_fetch_add(&looper.launches, 1);
        if (rc == CU_OK && n % looper.sync_every == 0) {
            rc = cu.stream_sync(looper.stream);
            if (looper.idle_us > 0) {
                nanosleep(&idle, NULL);
            }
        }
    }
    atomic_store(&looper.error, rc);
    return NULL;
}

static cu_result open_device(int ordinal) {
    cu_device device;
    cu_module module;
    cu_result rc = cu.device_get(&device, ordinal);

    rc = rc != CU_OK ? rc : cu.primary_retain(&context, device);
    rc = rc != CU_OK ? rc : cu.context_set(context);
    rc = rc != CU_OK ? rc : cu.module_load(&module, PTX);
    rc = rc != CU_OK ? rc : cu.module_function(&tick, module, "tick");
    rc = rc != CU_OK ? rc : cu.alloc(&state, sizeof(uint64_t));
    rc = rc != CU_OK ? rc : cu.fill8(state, 0, sizeof(uint64_t));
    return rc != CU_OK ? rc : cu.event_create(&event, 0);
}

static void answer(cu_result rc) {
    if (rc == CU_OK) {
        puts("ok");
    } else {
        printf("cuda %d\n", rc);
    }
}

static void answer_number(cu_result rc, uint64_t value) {
    if (rc == CU_OK) {
        printf("ok %" PRIu64 "\n", value);
    } else {
        printf("cuda %d\n", rc);
    }
}

static void do_uuid(uint64_t ordinal) {
    unsigned char uuid[16];
    cu_device device;
    cu_result rc = cu.device_get(&device, (int)ordinal);

    rc = rc != CU_OK ? rc : cu.device_uuid(uuid, device);
    if (rc != CU_OK) {
        answer(rc);
        return;
    }
    fputs("ok ", stdout);
    for (size_t i = 0; i < sizeof uuid; i++) {
        printf("%02x", uuid[i]);
    }
    puts("");
}

static void do_launch(uint64_t time_ns, uint64_t count) {
    const uint64_t before = now_ns();
    cu_result rc = CU_OK;

    for (uint64_t i = 0; i < count && rc == CU_OK; i++) {
        rc = launch_tick(current_stream(), time_ns);
    }
    answer_number(rc, now_ns() - before);
}

static void do_capture(uint64_t mode, uint64_t time_ns, uint64_t count) {
    cu_graph captured = NULL;
    size_t nodes = 0;
    cu_result rc = cu.capture_begin(current_stream(), (int)mode);

    for (uint64_t i = 0; i < count && rc == CU_OK; i++) {
        rc = launch_tick(current_stream(), time_ns);
    }
    rc = rc != CU_OK ? rc : cu.capture_end(current_stream(), &captured);
    rc = rc != CU_OK ? rc : cu.graph_nodes(captured, NULL, &nodes);
    rc = rc != CU_OK ? rc : cu.graph_instantiate(&graph, captured, 0);
    answer_number(rc, nodes);
}

static void do_graph(void) {
    const uint64_t before = now_ns();
    cu_result rc = cu.graph_launch(graph, current_stream());

    answer_number(rc, now_ns() - before);
}

static void do_serve(uint64_t rounds, uint64_t idle_us) {
    static float ms[SERVE_ROUNDS_MAX];
    cu_result rc;

    if (rounds == 0 || rounds > SERVE_ROUNDS_MAX) {
        puts("what number of rounds");
        return;
    }
    rc = serve(&cu, graph, current_stream(), rounds, idle_us, ms);
    if (rc != CU_OK) {
        answer(rc);
        return;
    }
    printf("ok %.0f %.0f %.0f\n", 1e6 * (double)ms[rounds / 2],
           1e6 * (double)ms[(rounds * 99 + 99) / 100 - 1], 1e6 * (double)ms[rounds - 1]);
}

static void do_stream(void) {
    cu_result rc;

    if (stream_count == STREAMS_MAX) {
        puts("what too many streams");
        return;
    }
    rc = cu.stream_create(&streams[stream_count], 1);
    if (rc == CU_OK) {
        stream_now = stream_count++;
    }
    answer_number(rc, stream_now);
}

static void do_query(void) {
    cu_result rc = cu.stream_query(current_stream());

    if (rc == CU_NOT_READY) {
        puts("ok busy");
    } else {
        answer(rc);
    }
}

static void do_alloc(uint64_t bytes) {
    cu_result rc;

    if (block_count == BLOCKS_MAX) {
        puts("what too many blocks");
        return;
    }
    rc = cu.alloc(&blocks[block_count], bytes);
    answer_number(rc, rc == CU_OK ? block_count++ : 0);
}

static void do_info(void) {
    size_t free_bytes = 0, total = 0;
    cu_result rc = cu.info(&free_bytes, &total);

    if (rc == CU_OK) {
        printf("ok %zu %zu\n", free_bytes, total);
    } else {
        answer(rc);
    }
}

static void do_count(void) {
    uint64_t value = 0;
    cu_result rc = cu.to_host(&value, state, sizeof value);
    uint64_t expected = 0, n = 0;

    while (rc == CU_OK && expected != value && n < COUNT_MAX) {
        expected = expected * FOLD + 1;
        n++;
    }
    if (rc == CU_OK && n == COUNT_MAX) {
        printf("what state %016" PRIx64 " is of no number of kernels\n", value);
        return;
    }
    answer_number(rc, n);
}

static void do_loop(uint64_t time_ns, uint64_t sync_every, uint64_t idle_us) {
    looper = (struct looper){.time_ns = time_ns,
                             .sync_every = sync_every == 0 ? 1 : sync_every,
                             .idle_us = idle_us,
                             .context = context,
                             .stream = current_stream()};
    looping = pthread_create(&loop_thread, NULL, run_loop, NULL) == 0;
    puts(looping ? "ok" : "what no thread");
}

static void do_endloop(void) {
    if (looping) {
        atomic_store(&looper.stop, true);
        pthread_join(loop_thread, NULL);
        looping = false;
    }
    answer_number(atomic_load(&looper.error), atomic_load(&looper.launches));
}

/* The parent only hands the child's exit code on: the script goes on in the child. */
static void do_fork(void) {
    pid_t child = fork();

    if (child > 0) {
        int status = 0;

        waitpid(child, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
    puts(child == 0 ? "ok" : "what no fork");
}

/* Returns false if the command is none of those without a number. */
static bool run_plain(const char *name) {
    if (strcmp(name, "init") == 0) {
        answer(cu.init(0));
    } else if (strcmp(name, "stream") == 0) {
        do_stream();
    } else if (strcmp(name, "sync") == 0) {
        answer(cu.stream_sync(current_stream()));
    } else if (strcmp(name, "query") == 0) {
        do_query();
    } else if (strcmp(name, "ctxsync") == 0) {
        answer(cu.context_sync());
    } else if (strcmp(name, "destroy") == 0) {
        answer(cu.stream_destroy(current_stream()));
    } else if (strcmp(name, "record") == 0) {
        answer(cu.event_record(event, current_stream()));
    } else if (strcmp(name, "waitevent") == 0) {
        answer(cu.stream_wait(current_stream(), event, 0));
    } else if (strcmp(name, "eventsync") == 0) {
        answer(cu.event_sync(event));
    } else if (strcmp(name, "graph") == 0) {
        do_graph();
    } else if (strcmp(name, "info") == 0) {
        do_info();
    } else if (strcmp(name, "count") == 0) {
        do_count();
    } else if (strcmp(name, "wanted") == 0) {
        printf("ok %d\n", heddle_wanted());
    } else if (strcmp(name, "looped") == 0) {
        printf("ok %" PRIu64 " %" PRIu64 "\n", (uint64_t)atomic_load(&looper.launches),
               (uint64_t)atomic_load(&looper.longest_ns));
    } else if (strcmp(name, "endloop") == 0) {
        do_endloop();
    } else if (strcmp(name, "fork") == 0) {
        do_fork();
    } else {
        return false;
    }
    return true;
}

static bool run_with_numbers(const char *name, uint64_t a, uint64_t b, uint64_t c) {
    if (strcmp(name, "device") == 0) {
        answer(open_device((int)a));
    } else if (strcmp(name, "uuid") == 0) {
        do_uuid(a);
    } else if (strcmp(name, "use") == 0 && a < stream_count) {
        stream_now = a;
        puts("ok");
    } else if (strcmp(name, "launch") == 0) {
        do_launch(a, b == 0 ? 1 : b);
    } else if (strcmp(name, "capture") == 0) {
        do_capture(a, b, c);
    } else if (strcmp(name, "serve") == 0) {
        do_serve(a, b);
    } else if (strcmp(name, "yield") == 0) {
        answer_number(CU_OK, heddle_yield(a));
    } else if (strcmp(name, "alloc") == 0) {
        do_alloc(a);
    } else if (strcmp(name, "free") == 0 && a < block_count) {
        answer(cu.free(blocks[a]));
    } else if (strcmp(name, "freeptr") == 0) {
        answer(cu.free(a));
    } else if (strcmp(name, "loop") == 0) {
        do_loop(a, b, 0);
    } else if (strcmp(name, "pace") == 0) {
        do_loop(a, b, c);
    } else if (strcmp(name, "exit") == 0) {
        exit((int)a);
    } else {
        return false;
    }
    return true;
}

int main(void) {
    char line[LINE_MAX_BYTES];
    const char *missing = client_driver_open(&cu);

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (missing != NULL) {
        printf("what %s\n", missing);
        return 1;
    }
    while (fgets(line, sizeof line, stdin) != NULL) {
        char name[32] = "";
        uint64_t a = 0, b = 0, c = 0;

        if (sscanf(line, "%31s %" SCNu64 " %" SCNu64 " %" SCNu64, name, &a, &b, &c) < 1) {
            continue;
        }
        const struct hostile_gpu gpu = {.cu = &cu, .context = context, .tick = tick};
        if (!run_plain(name) && !run_with_numbers(name, a, b, c) &&
            !hostile_command(&gpu, name, a, b)) {
            printf("what %s\n", name);
        }
    }
    return 0;
}
