/*
 * A training that gives way between its steps. Anything can stand for the step; the only line that
 * matters here is the one that yields.
 *
 *     cc -I interpose/include docs/examples/yield_points.c -o train -ldl
 *     heddle run --priority low -- ./train
 */
#include <heddle/yield.h>

#include <inttypes.h>
#include <stdio.h>

static void train_step(int step) {
    printf("step %d\n", step);
}

int main(void) {
    uint64_t waited = 0;

    for (int step = 0; step < 10; step++) {
        train_step(step);
        waited += heddle_yield(HEDDLE_YIELD_LONG);
    }
    printf("waited %" PRIu64 " ns, %s\n", waited,
           heddle_wanted() ? "and is wanted again" : "no more");
    return 0;
}
