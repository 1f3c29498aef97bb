/* Fuzz target: any text may be handed to cuModuleLoadData. Build with clang -fsanitize=fuzzer. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "driver.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char head[] = ".version 6.4\n.target sm_70\n";
    char *text = malloc(sizeof(head) + size);
    if (text == NULL) {
        return 0;
    }
    memcpy(text, head, sizeof(head) - 1);
    memcpy(text + sizeof(head) - 1, data, size);
    text[sizeof(head) - 1 + size] = '\0';
    struct sg_module *m = calloc(1, sizeof(*m));
    if (m != NULL) {
        m->magic = SG_MODULE;
        (void)sg_ptx_parse(m, text);
        for (uint32_t i = 0; i < m->function_count; i++) {
            const struct sg_spec *spec = m->functions[i]->spec;
            if (spec->param_count > SG_MAX_PARAMS || spec->param_bytes > SG_PARAM_BYTES) {
                abort();
            }
            free(spec->name);
            free(m->functions[i]->spec);
            m->functions[i]->spec = NULL;
        }
        for (uint32_t i = 0; i < m->global_count; i++) {
            free(m->globals[i].name);
        }
        free(m->globals);
        free(m->functions);
        free(m);
    }
    free(text);
    return 0;
}
