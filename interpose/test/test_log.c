#include "log.h"

#include <pthread.h>
#include <stdlib.h>

#include "client.h"
#include "test.h"

static struct heddle_client_segment segment;

static void fresh(void) {
    memset(&segment, 0, sizeof(segment));
}

TEST("records are numbered and keep their text") {
    fresh();
    heddle_log_write(&segment, 5, HEDDLE_LOG_WARN, "first");
    heddle_log_write(&segment, 6, HEDDLE_LOG_INFO, "second");
    CHECK_EQUAL(segment.process.log_head, 2);
    CHECK_EQUAL(segment.log[0].sequence, 1);
    CHECK_EQUAL(segment.log[0].level, HEDDLE_LOG_WARN);
    CHECK_EQUAL(segment.log[1].time_ns, 6);
    CHECK(memcmp(segment.log[1].text, "second", segment.log[1].length) == 0);
}

TEST("the ring turns over, newest records win") {
    char text[16];

    fresh();
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof(text), "%d", i);
        heddle_log_write(&segment, 0, HEDDLE_LOG_INFO, text);
    }
    CHECK_EQUAL(segment.process.log_head, 1000);
    CHECK_EQUAL(segment.process.log_dropped, 0);
    CHECK_EQUAL(segment.log[999 % HEDDLE_LOG_RECORDS].sequence, 1000);
    CHECK(strcmp(segment.log[999 % HEDDLE_LOG_RECORDS].text, "999") == 0);
}

TEST("a long text is cut at the record's end") {
    char text[300];

    fresh();
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    heddle_log_write(&segment, 0, HEDDLE_LOG_INFO, text);
    CHECK_EQUAL(segment.log[0].length, HEDDLE_LOG_TEXT);
    CHECK_EQUAL(segment.log[1].sequence, 0);
    CHECK_EQUAL(segment.log[0].text[HEDDLE_LOG_TEXT - 1], 'x');
}

TEST("a writer that stopped in the middle costs the records that meet it") {
    fresh();
    for (int i = 0; i < HEDDLE_LOG_RECORDS; i++) {
        heddle_log_write(&segment, 0, HEDDLE_LOG_INFO, "a");
    }
    segment.log[0].sequence = 0; /* as while record 64 is being written */
    heddle_log_write(&segment, 0, HEDDLE_LOG_INFO, "b");
    CHECK_EQUAL(segment.process.log_dropped, 1);
    CHECK_EQUAL(segment.process.log_head, HEDDLE_LOG_RECORDS);
}

static void *write_many(void *text) {
    for (int i = 0; i < 5000; i++) {
        heddle_log_write(&segment, 0, HEDDLE_LOG_INFO, text);
    }
    return NULL;
}

TEST("four writers lose no record uncounted and mix none") {
    static char texts[4][8] = {"aaaaaaa", "bbbbbbb", "ccccccc", "ddddddd"};
    pthread_t threads[4];

    fresh();
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_create(&threads[i], NULL, write_many, texts[i]) == 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQUAL(segment.process.log_head + segment.process.log_dropped, 20000);
    for (int i = 0; i < HEDDLE_LOG_RECORDS; i++) {
        const char *text = segment.log[i].text;

        CHECK_EQUAL(segment.log[i].length, 7);
        CHECK(strspn(text, (char[]){text[0], '\0'}) == 7);
    }
}
