#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "since.h"
#include "tool.h"

extern const unsigned softgpu_names_count;
extern const char *const softgpu_names[];

/* The stubs belong to the driver; here only their names are wanted. */
int softgpu_stub(unsigned index);
int softgpu_stub(unsigned index) {
    return (int)index;
}

int tool_names(int argc, char **argv) {
    unsigned until = 99999;
    if (argc == 3 && strcmp(argv[1], "--until") == 0) {
        until = (unsigned)strtoul(argv[2], NULL, 10);
    } else if (argc != 1) {
        fprintf(stderr, "softgpu names: unknown argument %s\n", argv[1]);
        return 2;
    }
    for (unsigned i = 0; i < softgpu_names_count; i++) {
        if (sg_since(softgpu_names[i]) <= until) {
            printf("%s\n", softgpu_names[i]);
        }
    }
    return 0;
}
