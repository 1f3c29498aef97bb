/* What is read from the environment and from files. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "heddle/attach.h"
#include "locate.h"
#include "settings.h"
#include "size.h"
#include "test.h"

TEST("a class is a name or a digit") {
    CHECK(heddle_settings_class("realtime") == 0);
    CHECK(heddle_settings_class("idle") == 9);
    CHECK(heddle_settings_class("7") == 7);
    CHECK(heddle_settings_class("10") == HEDDLE_HINT_NONE);
    CHECK(heddle_settings_class("Low") == HEDDLE_HINT_NONE);
    CHECK(heddle_settings_class("") == HEDDLE_HINT_NONE);
    CHECK(heddle_settings_class(NULL) == HEDDLE_HINT_NONE);
}

TEST("a gang is a name of plain characters and the number of its ranks") {
    static const char longest[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:4";
    static const struct {
        const char *text;
        const char *name;
        uint32_t size;
    } cases[] = {
        {"job:4", "job", 4},
        {"a.b_c-9:1", "a.b_c-9", 1},
        {"job:1024", "job", 1024},
        {"job:0", "", 0},
        {"job:1025", "", 0},
        {"job:-1", "", 0},
        {"job:4x", "", 0},
        {"job: 4", "", 0},
        {"job:", "", 0},
        {"job", "", 0},
        {":4", "", 0},
        {"", "", 0},
        {"a b:4", "", 0},
        {"a:b:4", "", 0},
        {"j\303\266b:4", "", 0},
        {"job:+4", "", 0},
        {NULL, "", 0},
        {"job:18446744073709551620", "", 0},
    };
    char name[HEDDLE_NAME_BYTES];
    uint32_t size = 7;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK(heddle_settings_gang(cases[i].text, name, &size) == (cases[i].size != 0));
        CHECK(strcmp(name, cases[i].name) == 0);
        CHECK_EQUAL(size, cases[i].size);
    }
    CHECK(heddle_settings_gang(longest, name, &size)); /* 63 bytes of name */
    CHECK_EQUAL(strlen(name), HEDDLE_NAME_BYTES - 1);
    CHECK(!heddle_settings_gang(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789..:4", name, &size));
}

TEST("the driver's version is the first word of digits and dots") {
    static const struct {
        const char *text;
        const char *version;
    } cases[] = {
        {"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19\nGCC 12.2.0\n",
         "535.104.05"},
        {"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n",
         "580.65.06"},
        {"NVRM version: none\nGCC version:  gcc version 12.2.0\n", NULL},
        {"", NULL},
        {"1234567890.1234567890.1234567890.1234567890", NULL},
    };
    char version[32];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const bool found = heddle_locate_version(cases[i].text, version, sizeof(version));

        CHECK(found == (cases[i].version != NULL));
        CHECK(!found || strcmp(version, cases[i].version) == 0);
    }
}

static void write_file(const char *path, const void *bytes, size_t size) {
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    CHECK(file >= 0 && write(file, bytes, size) == (ssize_t)size);
    close(file);
}

TEST("a build of the interposer is known by its note") {
    CHECK(heddle_locate_is_interposer(getenv("HEDDLE_TEST_LIBRARY")));
    CHECK(!heddle_locate_is_interposer(getenv("HEDDLE_REAL_LIBCUDA")));
    CHECK(!heddle_locate_is_interposer("/nonexistent"));
    CHECK(!heddle_locate_is_interposer("/dev/null"));
}

/* Every prefix of a real file, and files of one repeated byte: nothing may be read out of bounds. */
TEST("a damaged file is no interposer and does no harm") {
    char path[] = "/tmp/heddle-test-XXXXXX";
    const int made = mkstemp(path);
    const int source = open(getenv("HEDDLE_TEST_LIBRARY"), O_RDONLY | O_CLOEXEC);
    unsigned char bytes[8192];
    const ssize_t size = read(source, bytes, sizeof(bytes));

    CHECK(made >= 0 && source >= 0 && size == (ssize_t)sizeof(bytes));
    for (size_t length = 0; length < 1024; length += 7) {
        write_file(path, bytes, length);
        (void)heddle_locate_is_interposer(path);
    }
    srandom(7);
    for (int i = 0; i < 2000; i++) {
        const size_t where = (size_t)random() % 2048;
        const unsigned char old = bytes[where];

        bytes[where] = (unsigned char)random();
        write_file(path, bytes, sizeof(bytes));
        (void)heddle_locate_is_interposer(path);
        bytes[where] = old;
    }
    close(made);
    close(source);
    unlink(path);
}

TEST("an array's size is its elements, and a missing dimension counts as one") {
    const struct heddle_array flat = {.width = 100, .height = 0, .format = 0x20, .channels = 4};
    const struct heddle_array3d cube = {
        .width = 8, .height = 8, .depth = 8, .format = 0x02, .channels = 1};

    CHECK_EQUAL(heddle_size_array(&flat), 1600);
    CHECK_EQUAL(heddle_size_array3d(&cube), 1024);
    CHECK_EQUAL(heddle_size_mipmapped(&cube, 4), 2 * (512 + 64 + 8 + 1));
    CHECK_EQUAL(heddle_size_mipmapped(&cube, 1), 1024);
}
