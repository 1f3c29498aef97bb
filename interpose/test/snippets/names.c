/*
 * Asks cuGetProcAddress, both forms, for every name it reads, with every flag and version, and prints
 * which export each answer is: all names at that address, or ? for an address that is no export.
 * With the argument "old" only the first form, which older drivers have.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "probe.h"

enum { NAMES_MAX = 2048, NAME_BYTES = 128 };

typedef int (*address_call)(const char *, void **, int, uint64_t);
typedef int (*address_call_v2)(const char *, void **, int, uint64_t, int *);

static char names[NAMES_MAX][NAME_BYTES];
static void *exports[NAMES_MAX];
static int count;

static const int versions[] = {11000, 11010, 11020, 11030, 11040, 11050, 11060, 11070,
                               11080, 12000, 12010, 12020, 12030, 12040, 12050, 12060,
                               12080, 12090, 13000, 13010, 13020, 13030};

static void print_answer(int form, int name, int version, uint64_t flags, int result, int status,
                         const void *answer) {
    bool any = answer == NULL;

    printf("%d %s %d %d %d %d ", form, names[name], version, (int)flags, result, status);
    for (int i = 0; i < count && answer != NULL; i++) {
        if (exports[i] == answer) {
            printf("%s%s", any ? "," : "", names[i]);
            any = true;
        }
    }
    printf("%s\n", any ? "" : "?");
}

int main(int argc, char **argv) {
    const bool both = argc < 2 || strcmp(argv[1], "old") != 0;
    void *handle = dlopen("libcuda.so.1", RTLD_NOW);
    address_call old = NULL;
    address_call_v2 call = NULL;

    if (handle == NULL) {
        return 1;
    }
    while (count < NAMES_MAX && scanf("%127s", names[count]) == 1) {
        exports[count] = dlsym(handle, names[count]);
        count++;
    }
    old = (address_call)(uintptr_t)probe_symbol(handle, "cuGetProcAddress");
    if (both) {
        call = (address_call_v2)(uintptr_t)probe_symbol(handle, "cuGetProcAddress_v2");
    }
    (void)probe_report(probe_symbol(handle, "cuInit"));
    for (int name = 0; name < count; name++) {
        for (size_t v = 0; v < sizeof(versions) / sizeof(versions[0]); v++) {
            for (uint64_t flags = 0; flags < 3; flags++) {
                void *answer = NULL;
                int status = -1;
                int result = 0;

                if (call != NULL) {
                    result = call(names[name], &answer, versions[v], flags, &status);
                    print_answer(2, name, versions[v], flags, result, status, answer);
                }
                answer = NULL;
                result = old(names[name], &answer, versions[v], flags);
                print_answer(1, name, versions[v], flags, result, 0, answer);
            }
        }
    }
    return 0;
}
