/*
 * Writes the saved dump of version 1 of the contract: one segment of each kind and one message of
 * each type, every member set to a value of its own. The files beside this one were written by it
 * and stay as they are for ever: later versions must still read them.
 *
 *     cc -I interpose/include tests/testdata/abi-v1/write.c -o write && ./write FOLDER
 */
#include <heddle/abi.h>
#include <heddle/attach.h>

#include <stdio.h>
#include <string.h>

/* A number that tells where it belongs: the device, the place in the struct. */
static uint64_t mark(unsigned device, unsigned place) {
    return 0x100000u * (device + 1) + place;
}

static int save(const char *folder, const char *name, const void *data, size_t size) {
    char path[512];
    FILE *f;
    size_t written;

    snprintf(path, sizeof path, "%s/%s.bin", folder, name);
    f = fopen(path, "wb");
    if (f == NULL) {
        perror(path);
        return 1;
    }
    written = fwrite(data, 1, size, f);
    if (fclose(f) != 0 || written != size) {
        perror(path);
        return 1;
    }
    return 0;
}

static struct heddle_segment_header segment_header(uint32_t magic, uint64_t size) {
    struct heddle_segment_header h = {0};

    h.magic = magic;
    h.abi_version = 1;
    h.size = size;
    h.features = 0x5;
    h.generation = 7;
    return h;
}

static int save_client(const char *folder) {
    static struct heddle_client_segment s;

    s.header = segment_header(HEDDLE_MAGIC_CLIENT, sizeof s);
    s.process.pid = 4242;
    s.process.attach_count = 2;
    s.process.unnamed_addresses = 3;
    s.process.log_head = 2;
    s.process.log_dropped = 1;
    s.process.samples_head = 2;
    s.process.kernels_head = 2;
    s.process.trace_head = 2;
    s.process.trace_dropped = 3;
    for (unsigned i = 0; i < HEDDLE_DEVICES_MAX; i++) {
        struct heddle_client_device *d = &s.devices[i];

        d->busy_streams = i;
        d->doorbell = (uint32_t)mark(i, 1);
        d->idle_since_ns = mark(i, 2);
        d->busy_until_ns = mark(i, 3);
        d->next_launch_ns = mark(i, 4);
        d->head_estimate_ns = mark(i, 5);
        d->busy_ns = mark(i, 6);
        d->busy_since_ns = mark(i, 7);
        d->held_ns = mark(i, 8);
        d->held_since_ns = mark(i, 9);
        d->holds = mark(i, 10);
        d->overruns = mark(i, 11);
        d->paced_ns = mark(i, 12);
        d->graph_launches = mark(i, 13);
        d->memory_bytes = mark(i, 14);
        d->memory_peak_bytes = mark(i, 15);
        d->allocations = mark(i, 16);
        d->frees = mark(i, 17);
        d->want_ns = mark(i, 18);
        d->device_ns = mark(i, 19);
        for (unsigned b = 0; b < HEDDLE_UUID_BYTES; b++) {
            d->uuid[b] = (uint8_t)(16 * i + b + 1);
        }
    }
    for (unsigned i = 0; i < HEDDLE_THREADS_MAX; i++) {
        s.threads[i].launches = 1000 + i;
    }
    for (unsigned i = 0; i < 2; i++) {
        struct heddle_log_record *r = &s.log[i];

        r->sequence = i + 1;
        r->time_ns = 500 + i;
        r->level = i == 0 ? HEDDLE_LOG_INFO : HEDDLE_LOG_ERROR;
        r->length = (uint32_t)snprintf(r->text, sizeof r->text, "record %u", i);
    }
    for (unsigned i = 0; i < 2; i++) {
        struct heddle_sample_record *r = &s.samples[i];

        r->sequence = i + 1;
        r->kernel = mark(i, 20);
        r->previous = mark(i, 21);
        r->device_ns = mark(i, 22);
        r->gap_ns = mark(i, 23);
        r->time_ns = mark(i, 24);
        r->device_slot = i;
        r->flags = i == 0 ? HEDDLE_SAMPLE_MEASURED : HEDDLE_SAMPLE_GAP | HEDDLE_SAMPLE_GRAPH;
    }
    for (unsigned i = 0; i < 2; i++) {
        struct heddle_kernel_record *r = &s.kernels[i];

        r->sequence = i + 1;
        r->key = mark(i, 25);
        r->module_hash = mark(i, 26);
        for (unsigned axis = 0; axis < 3; axis++) {
            r->grid[axis] = 10 * i + axis + 1;
            r->block[axis] = 100 * i + axis + 1;
        }
        r->dynamic_shared = (uint32_t)mark(i, 27);
        r->static_shared = (uint32_t)mark(i, 28);
        r->registers = (uint32_t)mark(i, 29);
        r->threads_max = (uint32_t)mark(i, 30);
        r->blocks_per_sm = (uint32_t)mark(i, 31);
        r->flags = i == 0 ? HEDDLE_KERNEL_ATTRIBUTES : HEDDLE_KERNEL_GRAPH | HEDDLE_KERNEL_CUT;
        r->length = (uint32_t)snprintf(r->name, sizeof r->name, "kernel_%u", i);
    }
    for (unsigned i = 0; i < 2; i++) {
        struct heddle_trace_record *r = &s.trace[i];

        r->sequence = i + 1;
        r->time_ns = mark(i, 32);
        r->duration_ns = mark(i, 33);
        r->kernel = mark(i, 34);
        r->guess_ns = mark(i, 35);
        r->stream = (uint32_t)mark(i, 36);
        r->device_slot = i;
        r->kind = i == 0 ? HEDDLE_TRACE_LAUNCH : HEDDLE_TRACE_HOLD;
        r->flags = i == 0 ? HEDDLE_TRACE_MEASURED | HEDDLE_TRACE_GRAPH : HEDDLE_TRACE_OVERRUN;
        r->reason = i == 0 ? 0 : 5;
        r->peer = i;
    }
    return save(folder, "client", &s, sizeof s);
}

static int save_verdict(const char *folder) {
    static struct heddle_verdict_segment s;

    s.header = segment_header(HEDDLE_MAGIC_VERDICT, sizeof s);
    s.process.gate = HEDDLE_GATE_YIELD | HEDDLE_GATE_WINDOW | HEDDLE_GATE_MEASURE;
    s.process.fail_mode = HEDDLE_FAIL_CLOSED;
    s.process.clock_source = HEDDLE_CLOCK_COUNTER;
    s.process.clock_shift = 32;
    s.process.clock_mult = 11;
    s.process.clock_base_ticks = 12;
    s.process.clock_base_ns = 13;
    s.process.measure_every = 14;
    s.process.trace = 1;
    for (unsigned i = 0; i < HEDDLE_DEVICES_MAX; i++) {
        struct heddle_verdict_device *d = &s.devices[i];

        d->gate = HEDDLE_GATE_YIELD | HEDDLE_GATE_WINDOW | HEDDLE_GATE_MEASURE;
        d->generation = i + 1;
        d->priority = i % HEDDLE_CLASSES_MAX;
        d->weight = (uint32_t)mark(i, 1);
        d->window_ns = mark(i, 2);
        d->estimate_ns = mark(i, 3);
        d->quiet_ns = mark(i, 4);
        d->max_hold_ns = mark(i, 5);
        d->margin_ppm = (uint32_t)mark(i, 6);
        d->sm_share_ppm = (uint32_t)mark(i, 7);
        d->memory_quota_bytes = mark(i, 8);
        for (unsigned w = 0; w < HEDDLE_PEER_WORDS; w++) {
            d->yields[w] = mark(i, 9 + w);
            d->corun[w] = mark(i, 13 + w);
        }
        d->corun_ns = mark(i, 17);
        d->min_gap_ns = mark(i, 18);
        d->max_block_ns = mark(i, 19);
        d->token_ns = mark(i, 20);
        d->stream_priority = i % 2 == 0 ? 1 : -1;
        d->time_share_ppm = (uint32_t)mark(i, 21);
        d->keep_ppm = (uint32_t)mark(i, 22);
    }
    /* Three keys that want the same place, the last two of the table and round its end. */
    for (unsigned i = 0; i < 3; i++) {
        const uint64_t home = HEDDLE_PROFILE_ENTRIES - 2;
        struct heddle_profile_entry *e = &s.profile[(home + i) % HEDDLE_PROFILE_ENTRIES];

        e->key = home << HEDDLE_PROFILE_SHIFT | (i + 1);
        e->estimate_ns = mark(i, 21);
        e->gap_ns = mark(i, 22);
        e->flags = i == 0 ? HEDDLE_PROFILE_CORUN : 0;
        e->sm_need = i;
    }
    return save(folder, "verdict", &s, sizeof s);
}

static int save_arena(const char *folder) {
    static struct heddle_arena_segment s;

    s.header = segment_header(HEDDLE_MAGIC_ARENA, sizeof s);
    for (unsigned w = 0; w < HEDDLE_PEER_WORDS; w++) {
        s.sleepers[w] = mark(w, 1);
    }
    s.token_holder = 5;
    s.token_expiry_ns = 6;
    for (unsigned i = 0; i < HEDDLE_MEMBERS_MAX; i++) {
        s.heads[i] = mark(i, 2);
    }
    return save(folder, "arena", &s, sizeof s);
}

static struct heddle_msg_header message_header(uint16_t type, size_t size) {
    struct heddle_msg_header h = {0};

    h.magic = HEDDLE_MSG_MAGIC;
    h.version = 1;
    h.type = type;
    h.size = (uint32_t)size;
    return h;
}

static int save_messages(const char *folder) {
    struct heddle_msg_hello hello = {0};
    struct heddle_msg_welcome welcome = {0};
    struct heddle_msg_device device = {0};
    struct heddle_msg_peer peer = {0};
    struct heddle_msg_arena arena = {0};
    struct heddle_msg_evict evict = {0};
    struct heddle_msg_header bye = message_header(HEDDLE_MSG_BYE, sizeof bye);

    hello.header = message_header(HEDDLE_MSG_HELLO, sizeof hello);
    hello.abi_version = 1;
    hello.abi_oldest = 1;
    hello.pid = 4242;
    hello.priority_hint = HEDDLE_CLASS_LOW;
    hello.weight_hint = 300;
    memset(hello.token, 0xa1, sizeof hello.token);
    strcpy(hello.name, "training");
    strcpy(hello.build, "v1.0.0");
    hello.gang_size = 4;
    strcpy(hello.gang, "job-7");

    welcome.header = message_header(HEDDLE_MSG_WELCOME, sizeof welcome);
    welcome.status = HEDDLE_STATUS_FULL;
    welcome.abi_version = 1;
    welcome.generation = 7;
    welcome.client_id = 99;
    memset(welcome.token, 0xb2, sizeof welcome.token);
    strcpy(welcome.text, "too many clients");

    device.header = message_header(HEDDLE_MSG_DEVICE, sizeof device);
    device.slot = 3;
    memset(device.uuid, 0xc3, sizeof device.uuid);

    peer.header = message_header(HEDDLE_MSG_PEER, sizeof peer);
    peer.op = HEDDLE_PEER_ADD;
    peer.slot = 200;
    peer.device_slot = 3;
    peer.peer_slot = 4;

    arena.header = message_header(HEDDLE_MSG_ARENA, sizeof arena);
    arena.device_slot = 3;
    arena.priority = HEDDLE_CLASS_IDLE;
    arena.member = HEDDLE_MEMBER_NONE;

    evict.header = message_header(HEDDLE_MSG_EVICT, sizeof evict);
    strcpy(evict.text, "segment header changed");

    return save(folder, "hello", &hello, sizeof hello) |
           save(folder, "welcome", &welcome, sizeof welcome) |
           save(folder, "device", &device, sizeof device) |
           save(folder, "peer", &peer, sizeof peer) |
           save(folder, "arena-message", &arena, sizeof arena) |
           save(folder, "evict", &evict, sizeof evict) | save(folder, "bye", &bye, sizeof bye);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    return save_client(argv[1]) | save_verdict(argv[1]) | save_arena(argv[1]) |
           save_messages(argv[1]);
}
