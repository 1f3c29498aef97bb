/* softgpu: looks at and steers a simulated node. */
#include <stdio.h>
#include <string.h>

#include "tool.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"show", tool_show, "show [--json]              GPUs, processes, calls of what is missing"},
    {"names", tool_names,
     "names [--until VERSION]    exported names, of a driver up to that version"},
};

int main(int argc, char **argv) {
    for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    FILE *out = argc > 1 && strcmp(argv[1], "--help") == 0 ? stdout : stderr;
    fprintf(out, "usage: softgpu COMMAND ...\n");
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        fprintf(out, "  %s\n", commands[i].help);
    }
    return out == stdout ? 0 : 2;
}
