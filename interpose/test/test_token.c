/* The gap token and the heads of a class, with members that are other processes. */
#include "test.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arena.h"
#include "client.h"
#include "daemon.h"
#include "token.h"

enum { DEVICE = 3, SELF = 5, OTHER = 9, LONGEST = 1000 };

static int arena_file = -1;
static struct heddle_arena_segment *arena;

static void join_as(int member) {
    struct heddle_msg_arena message = {
        .device_slot = DEVICE, .priority = 7, .member = (int32_t)member};

    CHECK(heddle_arena_adopt(&message, arena_file));
}

static void fresh_arena(void) {
    if (arena_file >= 0) {
        munmap(arena, sizeof(*arena));
        close(arena_file);
    }
    arena = test_segment(sizeof(*arena), &arena_file);
    join_as(SELF);
    heddle_token_reset();
}

TEST("a free token is taken, and is free again when it was given back") {
    uint64_t claim = 0;

    fresh_arena();
    claim = heddle_token_claim(DEVICE, 5000, 300, LONGEST);
    CHECK_EQUAL(claim, 5300);
    CHECK_EQUAL(arena->token_holder, SELF + 1);
    CHECK_EQUAL(heddle_token_claim(DEVICE, 5001, 300, LONGEST), 0); /* also for this process */
    heddle_token_release(DEVICE, claim);
    CHECK_EQUAL(arena->token_holder, 0);
    CHECK_EQUAL(heddle_token_claim(DEVICE, 5002, 300, LONGEST), 5302);
}

TEST("a claim is bounded by the longest time for which a token may be kept") {
    fresh_arena();
    CHECK_EQUAL(heddle_token_claim(DEVICE, 5000, LONGEST + 1, LONGEST), 5000 + LONGEST);
}

TEST("where no time is allowed nobody has the token, and a launch of no time takes it") {
    fresh_arena();
    CHECK_EQUAL(heddle_token_claim(DEVICE, 5000, 300, 0), 0);
    CHECK_EQUAL(heddle_token_claim(DEVICE, 5000, 0, LONGEST), 5001);
}

TEST("the token of a holder that died is free when its time is over") {
    fresh_arena();
    arena->token_holder = OTHER + 1;
    arena->token_expiry_ns = 5500;
    CHECK_EQUAL(heddle_token_claim(DEVICE, 5499, 300, LONGEST), 0);
    CHECK_EQUAL(heddle_token_claim(DEVICE, 5500, 300, LONGEST), 5800);
    CHECK_EQUAL(arena->token_holder, SELF + 1);
}

TEST("a holder whose time is over gives nothing back that another has") {
    uint64_t claim = 0;

    fresh_arena();
    claim = heddle_token_claim(DEVICE, 5000, 300, LONGEST);
    arena->token_holder = OTHER + 1;
    arena->token_expiry_ns = 5700;
    heddle_token_release(DEVICE, claim);
    CHECK_EQUAL(arena->token_holder, OTHER + 1);
    CHECK_EQUAL(arena->token_expiry_ns, 5700);
}

TEST("a member that claims the token for ever is not believed") {
    fresh_arena();
    arena->token_expiry_ns = UINT64_MAX;
    CHECK_EQUAL(heddle_token_claim(DEVICE, 5000, 300, LONGEST), 5300);
}

TEST("who is in no arena has no token, wants nothing of others and is the best") {
    fresh_arena();
    CHECK_EQUAL(heddle_token_claim(DEVICE + 1, 5000, 300, LONGEST), 0);
    CHECK_EQUAL(heddle_token_expiry(DEVICE + 1), UINT64_MAX);
    CHECK(heddle_token_best(DEVICE + 1, 1, 1000, 0));
    heddle_token_release(DEVICE + 1, 5300);
}

TEST("the longest launch that fits is the best, of equal ones that of the lowest member") {
    static const struct {
        uint64_t head; /* of the other member */
        int other;
        uint32_t margin;
        bool best;
    } cases[] = {
        {0, OTHER, 0, true},       {99, OTHER, 0, true},        {101, OTHER, 0, false},
        {1000, OTHER, 0, false},   {1001, OTHER, 0, true},      {100, OTHER, 0, true},
        {100, SELF - 1, 0, false}, {1000, OTHER, 1000, true},   {999, OTHER, 1000, false},
        {UINT64_MAX, 0, 0, true},  {500, SELF + 250, 0, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fresh_arena();
        arena->heads[SELF] = 7777; /* one's own does not matter */
        arena->heads[cases[i].other] = cases[i].head;
        CHECK_EQUAL(heddle_token_best(DEVICE, 100, 1000, cases[i].margin), cases[i].best);
    }
}

TEST("the longest of the launches that wait speaks for the client, until none waits") {
    const uint64_t *want = &heddle_client()->devices[DEVICE].want_ns;

    fresh_arena();
    heddle_token_want(DEVICE, 400);
    heddle_token_want(DEVICE, 300);
    CHECK_EQUAL(*want, 400);
    CHECK_EQUAL(arena->heads[SELF], 400);
    heddle_token_want(DEVICE, 500);
    CHECK_EQUAL(*want, 500);
    heddle_token_unwant(DEVICE);
    heddle_token_unwant(DEVICE);
    CHECK_EQUAL(arena->heads[SELF], 500);
    heddle_token_unwant(DEVICE);
    CHECK_EQUAL(*want, 0);
    CHECK_EQUAL(arena->heads[SELF], 0);
    heddle_token_want(DEVICE, 0); /* unknown, and yet somebody waits */
    CHECK_EQUAL(*want, 1);
    heddle_token_unwant(DEVICE);
}

/* What two members and their threads see of each other. */
struct contest {
    uint64_t now; /* goes on by one with every look */
    uint64_t inside;
    uint64_t claims;
    uint64_t clashes;
};

static struct contest *contest;

enum { ROUNDS = 20000, FOR_EVER = 1000 * 1000 * 1000 };

static void *compete(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t now = heddle_add_seq_cst64(&contest->now, 1);
        const uint64_t claim = heddle_token_claim(DEVICE, now, FOR_EVER, FOR_EVER);

        if (claim != 0) {
            if (heddle_add_seq_cst64(&contest->inside, 1) != 1) {
                heddle_add_seq_cst64(&contest->clashes, 1);
            }
            heddle_add_seq_cst64(&contest->claims, 1);
            heddle_add_seq_cst64(&contest->inside, (uint64_t)-1);
            heddle_token_release(DEVICE, claim);
        }
    }
    return unused;
}

TEST("of two members with two threads each never more than one has the token") {
    pthread_t threads[2];
    pid_t child = 0;
    int status = 1;

    fresh_arena();
    contest =
        mmap(NULL, sizeof(*contest), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    child = fork();
    if (child == 0) {
        join_as(OTHER);
    }
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&threads[i], NULL, compete, NULL) == 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    if (child == 0) {
        _exit(test_failures);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(contest->claims > 0);
    CHECK_EQUAL(contest->clashes, 0);
    CHECK_EQUAL(arena->token_expiry_ns, 0);
    munmap(contest, sizeof(*contest));
}
