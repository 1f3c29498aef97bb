/* Reads a PTX module as far as the software GPU cares: entries with their parameters, globals, and
 * the comment lines that say what a kernel does:
 *
 *     // softgpu.kernel NAME KIND key=value ...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

static const struct {
    const char *name;
    enum sg_kind kind;
} kinds[] = {
    {"fill", SG_KIND_FILL},         {"copy", SG_KIND_COPY}, {"saxpy", SG_KIND_SAXPY},
    {"checksum", SG_KIND_CHECKSUM}, {"spin", SG_KIND_SPIN}, {"stream", SG_KIND_STREAM},
    {"gemm", SG_KIND_GEMM},         {"busy", SG_KIND_BUSY}, {"opaque", SG_KIND_OPAQUE},
};

static const char *skip_blank(const char *p) {
    return p + strspn(p, " \t\r\n");
}

static size_t word_length(const char *p) {
    return strcspn(p, " \t\r\n,;()[]{}=");
}

/* Length of "[...]", which may not be closed. */
static size_t bracket_length(const char *p) {
    size_t len = strcspn(p, "]");
    return p[len] == ']' ? len + 1 : len;
}

/* Behind a word of that length; one character on where there is none; never past the end. */
static const char *step(const char *p, size_t len) {
    return skip_blank(p + (len == 0 && *p != '\0' ? 1 : len));
}

static char *copy_word(const char *p, size_t len) {
    char *s = malloc(len + 1);
    if (s != NULL) {
        memcpy(s, p, len);
        s[len] = '\0';
    }
    return s;
}

static void set_defaults(struct sg_spec *spec, enum sg_kind kind) {
    spec->kind = kind;
    spec->time_ns = -1;
    spec->time_param = -1;
    spec->registers = 32;
    spec->max_threads = 1024;
    switch (kind) {
    case SG_KIND_FILL:
    case SG_KIND_COPY:
    case SG_KIND_STREAM:
    case SG_KIND_SAXPY:
    case SG_KIND_CHECKSUM:
        spec->dram = 0.9;
        break;
    case SG_KIND_GEMM:
        spec->dram = 0.3;
        break;
    default:
        spec->dram = 0;
        break;
    }
}

struct sg_function *sg_module_function(struct sg_module *m, const char *name) {
    for (uint32_t i = 0; i < m->function_count; i++) {
        if (strcmp(m->functions[i]->spec->name, name) == 0) {
            return m->functions[i];
        }
    }
    return NULL;
}

struct sg_function *sg_module_add(struct sg_module *m, const char *name, size_t len) {
    struct sg_function *f = sg_object(sizeof(*f), m->magic == SG_LIBRARY ? SG_KERNEL : SG_FUNCTION);
    struct sg_spec *spec = calloc(1, sizeof(*spec));
    struct sg_function **list =
        realloc(m->functions, (m->function_count + 1) * sizeof(*m->functions));
    if (list != NULL) {
        m->functions = list;
    }
    if (f == NULL || spec == NULL || list == NULL) {
        free(spec);
        return NULL;
    }
    set_defaults(spec, SG_KIND_OPAQUE);
    spec->name = copy_word(name, len);
    if (spec->name == NULL) {
        free(spec);
        return NULL;
    }
    f->spec = spec;
    f->module = m;
    m->functions[m->function_count++] = f;
    return f;
}

/* One `key=value` of a kernel line. Unknown keys are for somebody else. */
static void read_key(struct sg_spec *spec, const char *p) {
    size_t len = strcspn(p, "= \t\r\n");
    if (p[len] != '=') {
        return;
    }
    const char *value = p + len + 1;
    if (len == 7 && strncmp(p, "time_ns", 7) == 0) {
        if (strncmp(value, "param:", 6) == 0) {
            spec->time_param = atoi(value + 6);
        } else {
            spec->time_ns = strtod(value, NULL);
        }
    } else if (len == 4 && strncmp(p, "dram", 4) == 0) {
        double m = strtod(value, NULL);
        spec->dram = m < 0 ? 0 : m > 1 ? 1 : m;
    } else if (len == 4 && strncmp(p, "regs", 4) == 0) {
        spec->registers = (uint32_t)strtoul(value, NULL, 10);
    } else if (len == 4 && strncmp(p, "smem", 4) == 0) {
        spec->smem = (uint32_t)strtoul(value, NULL, 10);
    } else if (len == 7 && strncmp(p, "threads", 7) == 0) {
        spec->max_threads = (uint32_t)strtoul(value, NULL, 10);
    }
}

/* The line behind "softgpu.kernel". */
static void read_kernel_line(struct sg_module *m, const char *p) {
    p += strspn(p, " \t");
    size_t name_len = word_length(p);
    const char *name = p;
    p += name_len;
    p += strspn(p, " \t");
    size_t kind_len = word_length(p);
    char wanted[SOFTGPU_NAME_BYTES * 4];
    if (name_len == 0 || name_len >= sizeof(wanted)) {
        return;
    }
    memcpy(wanted, name, name_len);
    wanted[name_len] = '\0';
    struct sg_function *f = sg_module_function(m, wanted);
    if (f == NULL) {
        return; /* it names no entry of this module */
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strlen(kinds[i].name) == kind_len && strncmp(p, kinds[i].name, kind_len) == 0) {
            set_defaults(f->spec, kinds[i].kind);
        }
    }
    p += kind_len;
    while (*p == ' ' || *p == '\t') {
        p += strspn(p, " \t");
        read_key(f->spec, p);
        p += strcspn(p, " \t\r\n");
    }
}

/* Bytes of a PTX type such as ".u64"; 0 if it is none. */
static uint32_t type_size(const char *p, size_t len) {
    if (len < 3 || len > 4 || *p != '.' || strchr("usbf", p[1]) == NULL) {
        return 0;
    }
    unsigned long bits = strtoul(p + 2, NULL, 10);
    return bits == 8 || bits == 16 || bits == 32 || bits == 64 || bits == 128 ? (uint32_t)(bits / 8)
                                                                              : 0;
}

/* One parameter: ".param .u64 .ptr .global .align 8 name" or ".param .align 8 .b8 name[24]". */
static const char *read_param(struct sg_spec *spec, const char *p) {
    uint64_t size = 0;
    uint32_t align = 0;
    bool pointer = false;
    while (*p != '\0' && *p != ',' && *p != ')') {
        size_t len = word_length(p);
        if (len == 6 && strncmp(p, ".align", 6) == 0) {
            p = skip_blank(p + len);
            uint32_t a = (uint32_t)strtoul(p, NULL, 10);
            align = pointer ? align : a; /* behind .ptr it is about what is pointed to */
            len = word_length(p);
        } else if (len == 4 && strncmp(p, ".ptr", 4) == 0) {
            pointer = true;
        } else if (type_size(p, len) != 0) {
            size = type_size(p, len);
            align = align > size ? align : (uint32_t)size;
        } else if (*p == '[') {
            uint64_t n = strtoull(p + 1, NULL, 10);
            size = n > SG_PARAM_BYTES ? SG_PARAM_BYTES + 1 : size * n; /* too large stays so */
            len = bracket_length(p);
        }
        p = step(p, len);
    }
    if (size != 0 && spec->param_count < SG_MAX_PARAMS) {
        align = align == 0 ? 1 : align;
        align = align > SG_PARAM_BYTES ? SG_PARAM_BYTES : align;
        uint32_t at = (spec->param_bytes + align - 1) / align * align;
        if (at + size <= SG_PARAM_BYTES) {
            spec->param_offset[spec->param_count] = at;
            spec->param_size[spec->param_count] = (uint32_t)size;
            spec->param_count++;
            spec->param_bytes = at + (uint32_t)size;
        }
    }
    return p;
}

static void read_entry(struct sg_module *m, const char *p) {
    p = skip_blank(p);
    size_t len = word_length(p);
    struct sg_function *f = len == 0 ? NULL : sg_module_add(m, p, len);
    if (f == NULL) {
        return;
    }
    f->spec->known_params = true;
    p = skip_blank(p + len);
    if (*p != '(') {
        return;
    }
    p = skip_blank(p + 1);
    while (*p != '\0' && *p != ')') {
        p = read_param(f->spec, p);
        if (*p == ',') {
            p = skip_blank(p + 1);
        }
    }
}

static void add_global(struct sg_module *m, const char *name, size_t len, uint64_t size) {
    struct sg_global *list = realloc(m->globals, (m->global_count + 1) * sizeof(*list));
    if (list == NULL) {
        return;
    }
    m->globals = list;
    char *copy = copy_word(name, len);
    if (copy != NULL) {
        list[m->global_count++] = (struct sg_global){.name = copy, .size = size};
    }
}

/* ".global .align 4 .b8 name[16];" or ".global .u32 name = 3;": declared at file scope. */
static void read_global(struct sg_module *m, const char *p) {
    uint32_t size = 0;
    const char *name = NULL;
    size_t name_len = 0;
    uint64_t count = 1;
    p = skip_blank(p);
    while (*p != '\0' && *p != ';' && *p != '=' && *p != '\n') {
        size_t len = word_length(p);
        if (len == 6 && strncmp(p, ".align", 6) == 0) {
            p = skip_blank(p + len);
            len = word_length(p);
        } else if (type_size(p, len) != 0) {
            size = type_size(p, len);
        } else if (*p == '[') {
            uint64_t n = strtoull(p + 1, NULL, 10);
            count = n > UINT32_MAX || count > UINT32_MAX ? UINT32_MAX : count * n;
            len = bracket_length(p);
        } else if (len > 0 && *p != '.') {
            name = p;
            name_len = len;
        }
        p = step(p, len);
    }
    if (name != NULL && size != 0 && count > 0) {
        add_global(m, name, name_len, size * count);
    }
}

/* Calls `read` with what follows each `word` outside comments. `text` is without comments. */
static void each(struct sg_module *m, const char *text, const char *word,
                 void (*read)(struct sg_module *, const char *)) {
    size_t len = strlen(word);
    for (const char *p = strstr(text, word); p != NULL; p = strstr(p + len, word)) {
        const char *before = p;
        while (before > text && strchr(" \t\r\n", before[-1]) != NULL) {
            before--;
        }
        /* Behind .ptr the word tells where a parameter points, and declares nothing. */
        bool of_pointer = before - text >= 4 && strncmp(before - 4, ".ptr", 4) == 0;
        if (strchr(" \t\r\n", p[len]) != NULL && (p == text || before < p) && !of_pointer) {
            read(m, p + len);
        }
    }
}

static char *without_comments(const char *text) {
    size_t len = strlen(text);
    char *out = malloc(len + 1);
    if (out == NULL) {
        return NULL;
    }
    size_t n = 0;
    int depth = 0; /* file scope only: a body has .param, .global and the like of its own */
    for (const char *p = text; *p != '\0';) {
        if (p[0] == '/' && p[1] == '/') {
            p += strcspn(p, "\n");
        } else if (p[0] == '/' && p[1] == '*') {
            const char *end = strstr(p + 2, "*/");
            p = end == NULL ? p + strlen(p) : end + 2;
        } else {
            depth += *p == '{';
            if (depth == 0) {
                out[n++] = *p;
            }
            depth -= *p == '}' && depth > 0;
            p++;
        }
    }
    out[n] = '\0';
    return out;
}

bool sg_ptx_parse(struct sg_module *m, const char *text) {
    if (strstr(text, ".version") == NULL || strstr(text, ".target") == NULL) {
        return false;
    }
    char *plain = without_comments(text);
    if (plain == NULL) {
        return false;
    }
    each(m, plain, ".entry", read_entry);
    each(m, plain, ".global", read_global);
    each(m, plain, ".const", read_global);
    free(plain);
    static const char mark[] = "// softgpu.kernel";
    for (const char *p = strstr(text, mark); p != NULL; p = strstr(p + 1, mark)) {
        read_kernel_line(m, p + sizeof(mark) - 1);
    }
    return true;
}
