/* cuGetProcAddress for every exported name, several versions and flags. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "api.h"
#include "check.h"
#include "../src/since.h"

CUresult cuGetProcAddress(const char *symbol, void **address, int version, uint64_t flags);
CUresult cuGetExportTable(const void **table, const CUuuid *id);

static char names[1024][64];
static int count;

/* From the version script, which the exports are tested against. */
static void read_names(void) {
    char line[128];
    FILE *in = fopen("tests/softgpu/gen/libcuda.map", "re");
    while (in != NULL && count < 1024 && fgets(line, sizeof(line), in) != NULL) {
        const char *name = line + strspn(line, " ");
        size_t len = strcspn(name, ";");
        if (strncmp(name, "cu", 2) == 0 && name[len] == ';' && len < sizeof(names[0])) {
            memcpy(names[count], name, len);
            count++;
        }
    }
    CHECK(in != NULL && fclose(in) == 0);
}

static int has(const char *name) {
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return 1;
        }
    }
    return 0;
}

static const char *name_of(void *p) {
    Dl_info info;
    return dladdr(p, &info) != 0 && info.dli_sname != NULL ? info.dli_sname : "?";
}

static void base_of(const char *name, char base[64]) {
    snprintf(base, 64, "%.*s", (int)sg_base_length(name), name);
}

static void every_base_name_is_found(void) {
    CHECK_EQ(count, 726);
    for (int i = 0; i < count; i++) {
        char base[64];
        base_of(names[i], base);
        if (strncmp(base, "cudbg", 5) == 0) {
            continue;
        }
        for (uint64_t flags = 0; flags <= 2; flags++) {
            void *p = NULL;
            int status = -1;
            CUresult rc = cuGetProcAddress_v2(base, &p, 13030, flags, &status);
            const char *got = name_of(p);
            size_t len = strlen(base);
            if (rc != CUDA_SUCCESS || status != 0 || strncmp(got, base, len) != 0 ||
                sg_base_length(got) != len) {
                fprintf(stderr, "%s flags %d: %d, status %d, %s\n", base, (int)flags, rc, status,
                        got);
                check_failures++;
            }
        }
    }
}

static void the_newest_version_is_given_and_never_a_too_new_one(void) {
    static const int versions[] = {2000, 3020, 4000, 7000, 10000, 11000, 11030, 12000, 13030};
    for (int i = 0; i < count; i++) {
        char base[64];
        base_of(names[i], base);
        for (size_t v = 0; v < sizeof(versions) / sizeof(versions[0]); v++) {
            void *p = NULL;
            int status = -1;
            if (cuGetProcAddress_v2(base, &p, versions[v], 0, &status) == CUDA_SUCCESS) {
                CHECK(sg_since(name_of(p)) <= (unsigned)versions[v]);
                CHECK(!sg_is_per_thread(name_of(p)));
            } else {
                CHECK(p == NULL && status != 0);
            }
        }
    }
}

static void per_thread_forms_are_given_where_there_are_any(void) {
    for (int i = 0; i < count; i++) {
        if (!sg_is_per_thread(names[i])) {
            continue;
        }
        char base[64];
        char plain[64];
        void *p = NULL;
        int status = -1;
        base_of(names[i], base);
        OK(cuGetProcAddress_v2(base, &p, 13030, 0, &status));
        snprintf(plain, sizeof(plain), "%s_ptsz", name_of(p));
        int own = has(plain);
        snprintf(plain, sizeof(plain), "%s_ptds", name_of(p));
        own |= has(plain);
        OK(cuGetProcAddress_v2(base, &p, 13030, 2, &status));
        CHECK_EQ(sg_is_per_thread(name_of(p)) != 0, own);
    }
}

static void it_names_itself_by_version(void) {
    void *p = NULL;
    OK(cuGetProcAddress("cuGetProcAddress", &p, 11030, 0));
    CHECK(strcmp(name_of(p), "cuGetProcAddress") == 0);
    OK(cuGetProcAddress("cuGetProcAddress", &p, 12000, 0));
    CHECK(strcmp(name_of(p), "cuGetProcAddress_v2") == 0);
}

static void wrong_use_is_refused(void) {
    void *p = NULL;
    const void *table = &p;
    CUuuid id = {{0}};
    CHECK_EQ(cuGetProcAddress(NULL, &p, 12000, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuGetProcAddress("cuInit", NULL, 12000, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuGetProcAddress("cuInit", &p, 12000, 64), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuGetProcAddress("cuMemAlloc_v2", &p, 12000, 0), CUDA_ERROR_NOT_FOUND);
    CHECK_EQ(cuGetProcAddress("cudbgMain", &p, 12000, 0), CUDA_ERROR_NOT_FOUND);
    CHECK_EQ(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_FOUND);
    CHECK(table == NULL);
}

int main(void) {
    check_node("H100", "null");
    read_names();
    OK(cuInit(0));
    RUN("every base name is found", every_base_name_is_found);
    RUN("the newest version is given and never a too new one",
        the_newest_version_is_given_and_never_a_too_new_one);
    RUN("per-thread forms are given where there are any",
        per_thread_forms_are_given_where_there_are_any);
    RUN("it names itself by version", it_names_itself_by_version);
    RUN("wrong use is refused", wrong_use_is_refused);
    return finish("test_procaddr");
}
