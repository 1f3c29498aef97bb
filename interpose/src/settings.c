#include "settings.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct heddle_settings settings;
static pthread_once_t once = PTHREAD_ONCE_INIT;

int32_t heddle_settings_class(const char *text) {
    static const struct {
        const char *name;
        int32_t class;
    } names[] = {
        {"realtime", HEDDLE_CLASS_REALTIME}, {"high", HEDDLE_CLASS_HIGH},
        {"normal", HEDDLE_CLASS_NORMAL},     {"low", HEDDLE_CLASS_LOW},
        {"idle", HEDDLE_CLASS_IDLE},
    };

    if (text == NULL) {
        return HEDDLE_HINT_NONE;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i].name) == 0) {
            return names[i].class;
        }
    }
    if (text[0] >= '0' && text[0] <= '9' && text[1] == '\0') {
        return text[0] - '0';
    }
    return HEDDLE_HINT_NONE;
}

/* The number from 1 to max that is all of a text, else 0. */
static uint32_t number(const char *text, unsigned long max) {
    char *end = NULL;
    unsigned long value = 0;

    if (*text < '0' || *text > '9') {
        return 0;
    }
    value = strtoul(text, &end, 10);
    return *end == '\0' && value <= max ? (uint32_t)value : 0;
}

bool heddle_settings_gang(const char *text, char *name, uint32_t *size) {
    static const char known[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789._-";
    const size_t length = text != NULL ? strspn(text, known) : 0;

    memset(name, 0, HEDDLE_NAME_BYTES);
    *size = 0;
    if (length == 0 || length >= HEDDLE_NAME_BYTES || text[length] != ':') {
        return false;
    }
    *size = number(text + length + 1, HEDDLE_GANG_MAX);
    if (*size != 0) {
        memcpy(name, text, length);
    }
    return *size != 0;
}

static void copy(char *to, size_t size, const char *from, const char *otherwise) {
    const char *text = from != NULL && strlen(from) < size ? from : otherwise;

    memcpy(to, text, strlen(text) + 1);
}

/* A set-user-ID program does not let its caller choose libraries and sockets for it. */
static void read_environment(void) {
    const char *disable = secure_getenv("HEDDLE_DISABLE");
    const char *weight = secure_getenv("HEDDLE_WEIGHT");
    const char *name = secure_getenv("HEDDLE_NAME");

    settings.disabled = disable != NULL && strcmp(disable, "1") == 0;
    settings.priority_hint = heddle_settings_class(secure_getenv("HEDDLE_PRIORITY"));
    settings.weight_hint = weight != NULL ? number(weight, 10000) : 0;
    copy(settings.real, sizeof(settings.real), secure_getenv("HEDDLE_REAL_LIBCUDA"), "");
    copy(settings.socket, sizeof(settings.socket), secure_getenv("HEDDLE_SOCKET"),
         "/run/heddle/attach/attach.sock");
    if (name != NULL) {
        strncpy(settings.name, name, sizeof(settings.name) - 1);
    }
    (void)heddle_settings_gang(secure_getenv("HEDDLE_GANG"), settings.gang, &settings.gang_size);
}

const struct heddle_settings *heddle_settings(void) {
    pthread_once(&once, read_environment);
    return &settings;
}
