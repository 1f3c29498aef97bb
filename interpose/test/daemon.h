/*
 * A daemon of the test's own: it speaks the attach protocol from a thread of the test, and publishes
 * what the test tells it to.
 */
#ifndef HEDDLE_TEST_DAEMON_H
#define HEDDLE_TEST_DAEMON_H

#include <stdbool.h>

#include "heddle/attach.h"

struct test_daemon; /* one listening socket, one client at a time */

struct test_daemon *test_daemon_start(const char *path, enum heddle_status status);

/* Closes everything at once, as when it is killed. */
void test_daemon_kill(struct test_daemon *daemon);

/* The segments, once a client was welcomed; waits for it. */
struct heddle_verdict_segment *test_daemon_verdict(struct test_daemon *daemon);
const struct heddle_client_segment *test_daemon_client(struct test_daemon *daemon);
struct heddle_msg_hello test_daemon_hello(struct test_daemon *daemon);

/* The devices told so far; waits until there are that many. */
struct heddle_msg_device test_daemon_device(struct test_daemon *daemon, int number);

void test_daemon_send(struct test_daemon *daemon, const void *message, size_t size, int file);
void test_daemon_publish(struct test_daemon *daemon, uint32_t device, uint32_t gate);

/* A sealed segment of this size; the descriptor goes to *file. */
void *test_segment(size_t size, int *file);

#endif /* HEDDLE_TEST_DAEMON_H */
