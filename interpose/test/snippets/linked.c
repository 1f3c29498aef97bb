/* Is linked against the driver. With CONSTRUCTOR defined it starts before main. */
#include "probe.h"

int cuInit(unsigned flags);

static int answer;

#ifdef CONSTRUCTOR
__attribute__((constructor))
#endif
static void
start(void) {
    answer = cuInit(0);
}

int main(void) {
#ifndef CONSTRUCTOR
    start();
#endif
    /* Found at run time: the address of an imported function would be one in this program. */
    return answer != 0 ? 1 : probe_report(probe_symbol(RTLD_DEFAULT, "cuInit"));
}
