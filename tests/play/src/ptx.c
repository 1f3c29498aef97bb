#include "ptx.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Knuth's multiplier for 64-bit linear congruences; any odd number would do. */
static const uint64_t FOLD = 6364136223846793005U;

static const char HEADER[] = ".version 6.4\n"
                             ".target sm_70\n"
                             ".address_size 64\n";

/*
 * The time burned is a sum of small steps of the global timer: a step above 50 us means that the
 * block was off the device in between (contexts take turns), and that time was not its own.
 */
static const char ENTRY[] = "\n"
                            "// softgpu.kernel %s busy time_ns=param:1 dram=%.2f\n"
                            ".visible .entry %s(\n"
                            "    .param .u64 state,\n"
                            "    .param .u64 time_ns,\n"
                            "    .param .u64 block_ns,\n"
                            "    .param .u64 tag)\n"
                            "{\n"
                            "    .reg .pred %%p<4>;\n"
                            "    .reg .b32 %%r<4>;\n"
                            "    .reg .b64 %%rd<10>;\n"
                            "    ld.param.u64 %%rd1, [block_ns];\n"
                            "    mov.u64 %%rd2, 0;\n"
                            "    mov.u64 %%rd3, %%globaltimer;\n"
                            "spin:\n"
                            "    setp.ge.u64 %%p1, %%rd2, %%rd1;\n"
                            "    @%%p1 bra burned;\n"
                            "    mov.u64 %%rd4, %%globaltimer;\n"
                            "    sub.u64 %%rd5, %%rd4, %%rd3;\n"
                            "    mov.u64 %%rd3, %%rd4;\n"
                            "    min.u64 %%rd5, %%rd5, 50000;\n"
                            "    add.u64 %%rd2, %%rd2, %%rd5;\n"
                            "    bra spin;\n"
                            "burned:\n"
                            "    bar.sync 0;\n"
                            "    mov.u32 %%r1, %%tid.x;\n"
                            "    mov.u32 %%r2, %%ctaid.x;\n"
                            "    or.b32 %%r3, %%r1, %%r2;\n"
                            "    setp.ne.u32 %%p2, %%r3, 0;\n"
                            "    @%%p2 bra done;\n"
                            "    ld.param.u64 %%rd6, [state];\n"
                            "    setp.eq.u64 %%p3, %%rd6, 0;\n"
                            "    @%%p3 bra done;\n"
                            "    cvta.to.global.u64 %%rd6, %%rd6;\n"
                            "    ld.param.u64 %%rd7, [tag];\n"
                            "    ld.global.u64 %%rd8, [%%rd6];\n"
                            "    mul.lo.u64 %%rd8, %%rd8, %" PRIu64 ";\n"
                            "    add.u64 %%rd8, %%rd8, %%rd7;\n"
                            "    st.global.u64 [%%rd6], %%rd8;\n"
                            "done:\n"
                            "    ret;\n"
                            "}\n";

/* The table says which side of the roofline a kernel is on, not how far; these stand for the sides.
 */
static double dram_fraction(enum play_profile profile) {
    switch (profile) {
    case PLAY_PROFILE_MEMORY:
        return 0.90;
    case PLAY_PROFILE_COMPUTE:
        return 0.20;
    case PLAY_PROFILE_UNKNOWN:
        break;
    }
    return 0.50;
}

void play_ptx_name(const struct play_kernel *kernel, char out[PLAY_PTX_NAME_MAX]) {
    static const char letters[] = {'u', 'm', 'c'}; /* by profile + 1 */
    const size_t room = PLAY_PTX_NAME_MAX - sizeof "_c";
    size_t n = 0;

    /* An identifier begins with a letter; each run of other characters becomes one underscore. */
    if (!isalpha((unsigned char)kernel->name[0])) {
        out[n++] = 'k';
    }
    for (const char *at = kernel->name; *at != '\0' && n < room; at++) {
        if (isalnum((unsigned char)*at)) {
            out[n++] = *at;
        } else if (n > 0 && out[n - 1] != '_') {
            out[n++] = '_';
        }
    }
    if (out[n - 1] == '_') {
        n--;
    }
    /* The letter also keeps the name apart from PTX's own words, "add" say. */
    out[n++] = '_';
    out[n++] = letters[kernel->profile + 1];
    out[n] = '\0';
}

uint64_t play_ptx_fold(uint64_t state, uint64_t tag) {
    return state * FOLD + tag;
}

static bool find_entry(const struct play_ptx *ptx, const char *name, size_t *entry) {
    for (size_t i = 0; i < ptx->count; i++) {
        if (strcmp(ptx->names[i], name) == 0) {
            *entry = i;
            return true;
        }
    }
    return false;
}

static bool build(struct play_table *table, struct play_ptx *out, FILE *text) {
    fputs(HEADER, text);
    for (size_t i = 0; i < table->count; i++) {
        struct play_kernel *kernel = &table->kernels[i];
        char name[PLAY_PTX_NAME_MAX];

        play_ptx_name(kernel, name);
        if (find_entry(out, name, &kernel->entry)) {
            continue;
        }
        void *more = realloc(out->names, (out->count + 1) * sizeof *out->names);
        if (more == NULL) {
            return false;
        }
        out->names = more;
        memcpy(out->names[out->count], name, sizeof name);
        kernel->entry = out->count++;
        fprintf(text, ENTRY, name, dram_fraction(kernel->profile), name, FOLD);
    }
    return !ferror(text);
}

bool play_ptx_build(struct play_table *table, struct play_ptx *out, struct play_error *err) {
    size_t size = 0;

    *out = (struct play_ptx){NULL, NULL, 0};
    FILE *text = open_memstream(&out->text, &size);
    if (text == NULL) {
        return play_fail(err, "build the PTX module: out of memory");
    }
    const bool built = build(table, out, text);
    if (fclose(text) != 0 || !built) {
        play_ptx_free(out);
        return play_fail(err, "build the PTX module: out of memory");
    }
    return true;
}

void play_ptx_free(struct play_ptx *ptx) {
    free(ptx->text);
    free(ptx->names);
    *ptx = (struct play_ptx){NULL, NULL, 0};
}
