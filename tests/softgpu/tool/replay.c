/* The script has one item a line; docs/device-model.md describes it. */
#define _GNU_SOURCE
#include "replay.h"

#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "model.h"
#include "tool.h"

enum { MAX_NAMED = 256, MAX_ITEMS = 16384, MAX_WORDS = 24 };

struct named {
    char name[32];
    uint32_t index;
};

struct item {
    int64_t at;
    int order;
    uint32_t stream;
    uint32_t dep_item; /* WAIT: index of the item waited for */
    char label[32];
    struct softgpu_op op;
    uint64_t pos;
    bool done;
    int64_t start_ns, end_ns;
};

struct replay {
    struct softgpu_state *st;
    const struct softgpu_model *model;
    struct named contexts[MAX_NAMED];
    struct named streams[MAX_NAMED];
    uint32_t context_count, stream_count;
    struct item *items;
    uint32_t item_count;
    int line;
    FILE *err;
};

static int fail(const struct replay *r, const char *what, const char *word) {
    fprintf(r->err, "line %d: %s: %s\n", r->line, what, word);
    return -1;
}

static struct named *find(struct named *list, uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(list[i].name, name) == 0) {
            return &list[i];
        }
    }
    return NULL;
}

/* The value of key=value among the words, or NULL. */
static const char *value(char **words, int count, const char *key) {
    size_t len = strlen(key);
    for (int i = 0; i < count; i++) {
        if (strncmp(words[i], key, len) == 0 && words[i][len] == '=') {
            return words[i] + len + 1;
        }
    }
    return NULL;
}

static double number(char **words, int count, const char *key, double otherwise) {
    const char *v = value(words, count, key);
    return v == NULL ? otherwise : strtod(v, NULL);
}

static int start_device(struct replay *r, const char *name) {
    r->model = softgpu_model_find(name);
    if (r->model == NULL) {
        return fail(r, "no such model", name);
    }
    struct softgpu_state *st = r->st;
    double rate[SOFTGPU_QUEUES] = {r->model->h2d_bytes_per_ns, r->model->d2h_bytes_per_ns,
                                   r->model->dram_bytes_per_ns / 2, 0};
    sg_unit_init(&st->units[0], 0, r->model->sm_count, r->model->memory_bytes, rate);
    st->header.unit_count = 1;
    st->header.op_free = SOFTGPU_NONE;
    st->header.proc_high = 1;
    st->procs[0].state = SOFTGPU_SLOT_USED;
    st->procs[0].done_head = SOFTGPU_NONE;
    st->procs[0].done_tail = SOFTGPU_NONE;
    return 0;
}

static int add_context(struct replay *r, char **words, int count) {
    if (count < 2 || r->context_count == MAX_NAMED) {
        return fail(r, "a context needs a name", words[0]);
    }
    struct named *n = &r->contexts[r->context_count];
    n->index = r->context_count++;
    snprintf(n->name, sizeof(n->name), "%s", words[1]);
    struct softgpu_context *c = &r->st->contexts[n->index];
    c->state = SOFTGPU_SLOT_USED;
    c->legacy_stream = SOFTGPU_NONE;
    double percent = number(words, count, "mps", -1);
    c->flags = percent >= 0 ? SOFTGPU_CONTEXT_MPS : 0;
    c->sm_cap = sg_mps_cap(r->st->units[0].sm_count, percent > 0 ? (uint32_t)percent : 100);
    r->st->header.context_high = r->context_count;
    return 0;
}

static int add_stream(struct replay *r, char **words, int count) {
    struct named *c = count < 3 ? NULL : find(r->contexts, r->context_count, words[2]);
    if (c == NULL || r->stream_count == MAX_NAMED) {
        return fail(r, "a stream needs a name and a known context", words[0]);
    }
    struct named *n = &r->streams[r->stream_count];
    n->index = r->stream_count++;
    snprintf(n->name, sizeof(n->name), "%s", words[1]);
    struct softgpu_stream *s = &r->st->streams[n->index];
    memset(s, 0, sizeof(*s));
    s->state = SOFTGPU_SLOT_USED;
    s->context = c->index;
    s->priority = (int32_t)number(words, count, "priority", 0);
    s->head = SOFTGPU_NONE;
    s->tail = SOFTGPU_NONE;
    s->watch_unit = SOFTGPU_NONE;
    s->flags = SOFTGPU_STREAM_NONBLOCKING;
    if (value(words, count, "default") != NULL) {
        s->flags = *value(words, count, "default") == '1' ? SOFTGPU_STREAM_LEGACY : 0;
    }
    if (s->flags == SOFTGPU_STREAM_LEGACY) {
        r->st->contexts[c->index].legacy_stream = n->index;
    }
    r->st->header.stream_high = r->stream_count;
    return 0;
}

static void fill_kernel(const struct replay *r, struct softgpu_op *op, char **words, int count) {
    const struct softgpu_model *m = r->model;
    struct sg_sm_limits limits = {.threads = m->threads_per_sm,
                                  .blocks = m->blocks_per_sm,
                                  .registers = m->registers_per_sm,
                                  .smem = m->smem_per_sm};
    struct sg_footprint fp = {.blocks = (uint64_t)number(words, count, "grid", 1),
                              .threads = (uint32_t)number(words, count, "block", 32),
                              .registers = (uint32_t)number(words, count, "regs", 0),
                              .smem = (uint32_t)number(words, count, "smem", 0)};
    op->kind = SOFTGPU_OP_KERNEL;
    op->work_ns = number(words, count, "time", 0);
    op->dram = number(words, count, "dram", 0);
    sg_kernel_shape(op, &limits, &fp, m->sm_count);
}

static int fill_copy(const struct replay *r, struct softgpu_op *op, char **words, int count) {
    static const char *const names[] = {"h2d", "d2h", "d2d"};
    const char *q = value(words, count, "queue");
    op->kind = SOFTGPU_OP_COPY;
    for (uint32_t i = 0; q != NULL && i < 3; i++) {
        if (strcmp(q, names[i]) == 0) {
            op->queue = i;
            op->work_ns = number(words, count, "bytes", 0) / r->st->units[0].bytes_per_ns[i];
            return 0;
        }
    }
    return fail(r, "a copy needs queue=h2d, d2h or d2d", words[0]);
}

static int fill_wait(struct replay *r, struct item *it, char **words, int count) {
    const char *label = value(words, count, "for");
    it->op.kind = SOFTGPU_OP_WAIT;
    for (uint32_t i = 0; label != NULL && i < r->item_count; i++) {
        if (strcmp(r->items[i].label, label) == 0) {
            it->dep_item = i;
            return 0;
        }
    }
    return fail(r, "a wait needs for=LABEL of an earlier line", words[0]);
}

/* AT STREAM LABEL kernel|copy|mark|wait key=value ... */
static int add_item(struct replay *r, char **words, int count) {
    struct named *s = count < 4 ? NULL : find(r->streams, r->stream_count, words[1]);
    if (s == NULL || r->item_count == MAX_ITEMS) {
        return fail(r, "want: TIME STREAM LABEL KIND ..., with a known stream", words[0]);
    }
    struct item *it = &r->items[r->item_count];
    it->at = (int64_t)strtod(words[0], NULL);
    it->order = (int)r->item_count;
    it->stream = s->index;
    snprintf(it->label, sizeof(it->label), "%s", words[2]);
    int rc = 0;
    if (strcmp(words[3], "kernel") == 0) {
        fill_kernel(r, &it->op, words, count);
    } else if (strcmp(words[3], "copy") == 0) {
        rc = fill_copy(r, &it->op, words, count);
    } else if (strcmp(words[3], "wait") == 0) {
        rc = fill_wait(r, it, words, count);
    } else if (strcmp(words[3], "mark") == 0) {
        it->op.kind = SOFTGPU_OP_MARK;
    } else {
        return fail(r, "no such kind", words[3]);
    }
    r->item_count += rc == 0;
    return rc;
}

static int read_line(struct replay *r, char *line) {
    char *words[MAX_WORDS];
    int count = 0;
    char *save = NULL;
    line[strcspn(line, "#\n")] = '\0';
    for (char *w = strtok_r(line, " \t\r", &save); w != NULL && count < MAX_WORDS;
         w = strtok_r(NULL, " \t\r", &save)) {
        words[count++] = w;
    }
    if (count == 0) {
        return 0;
    }
    if (strcmp(words[0], "device") == 0 && count >= 2) {
        return start_device(r, words[1]);
    }
    if (r->model == NULL) {
        return fail(r, "the first line has to be: device MODEL", words[0]);
    }
    if (strcmp(words[0], "context") == 0) {
        return add_context(r, words, count);
    }
    if (strcmp(words[0], "stream") == 0) {
        return add_stream(r, words, count);
    }
    return add_item(r, words, count);
}

static int by_time(const void *a, const void *b) {
    const struct item *x = *(const struct item *const *)a;
    const struct item *y = *(const struct item *const *)b;
    return x->at != y->at ? (x->at < y->at ? -1 : 1) : x->order - y->order;
}

static void collect(struct replay *r) {
    struct softgpu_op op;
    while (sg_engine_take_done(r->st, 0, &op)) {
        struct item *it = &r->items[op.cookie];
        it->done = true;
        it->start_ns = op.start_ns;
        it->end_ns = op.end_ns;
    }
}

static int submit(struct replay *r, struct item *it) {
    uint32_t i = sg_op_take(r->st);
    if (i == SOFTGPU_NONE) {
        fprintf(r->err, "more operations at once than the pool holds\n");
        return -1;
    }
    struct softgpu_op *op = &r->st->ops[i];
    *op = it->op;
    op->state = SOFTGPU_OP_CLAIMED;
    op->stream = it->stream;
    op->context = r->st->streams[it->stream].context;
    op->cookie = (uint64_t)(it - r->items);
    if (op->kind == SOFTGPU_OP_WAIT) {
        op->dep_stream = r->items[it->dep_item].stream;
        op->dep_generation = r->st->streams[op->dep_stream].generation;
        op->dep_pos = r->items[it->dep_item].pos;
    }
    sg_engine_submit(r->st, i, it->at);
    it->pos = r->st->streams[it->stream].last_pos;
    return 0;
}

static int play(struct replay *r, FILE *out) {
    struct item **order = calloc(r->item_count + 1u, sizeof(struct item *));
    if (order == NULL) {
        return -1;
    }
    for (uint32_t i = 0; i < r->item_count; i++) {
        order[i] = &r->items[i];
    }
    qsort(order, r->item_count, sizeof(order[0]), by_time);
    int rc = 0;
    for (uint32_t i = 0; i < r->item_count && rc == 0; i++) {
        rc = submit(r, order[i]);
        collect(r);
    }
    free(order);
    while (rc == 0 && r->st->units[0].next_event_ns != SG_NEVER) {
        sg_engine_advance(r->st, 0, r->st->units[0].next_event_ns);
        collect(r);
    }
    for (uint32_t i = 0; i < r->item_count && rc == 0; i++) {
        const struct item *it = &r->items[i];
        if (it->done) {
            fprintf(out, "%s %lld %lld\n", it->label, (long long)it->start_ns,
                    (long long)it->end_ns);
        } else {
            fprintf(out, "%s - -\n", it->label);
        }
    }
    return rc;
}

int replay_script(FILE *in, FILE *out, FILE *err) {
    struct replay *r = calloc(1, sizeof(*r));
    struct item *items = calloc(MAX_ITEMS, sizeof(*items));
    struct softgpu_state *st = calloc(1, sizeof(*st));
    int rc = r == NULL || items == NULL || st == NULL ? -1 : 0;
    char *line = NULL;
    size_t room = 0;
    if (rc == 0) {
        r->st = st;
        r->items = items;
        r->err = err;
    }
    while (rc == 0 && getline(&line, &room, in) > 0) {
        r->line++;
        rc = read_line(r, line);
    }
    if (rc == 0) {
        rc = play(r, out);
    }
    free(line);
    free(st);
    free(items);
    free(r);
    return rc;
}

int tool_replay(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "softgpu replay: want one file, or - for the standard input\n");
        return 2;
    }
    FILE *in = strcmp(argv[1], "-") == 0 ? stdin : fopen(argv[1], "re");
    if (in == NULL) {
        fprintf(stderr, "softgpu replay: open %s: %m\n", argv[1]);
        return 1;
    }
    int rc = replay_script(in, stdout, stderr);
    if (in != stdin) {
        fclose(in);
    }
    return rc == 0 ? 0 : 1;
}
