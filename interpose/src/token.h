/*
 * Who of a class fills a gap: one member at a time, which holds the token of the class's arena, and
 * of those that wait the one whose launch fills the gap best.
 */
#ifndef HEDDLE_TOKEN_H
#define HEDDLE_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

/* Around a wait for others: says to lower classes and to the own class what launch waits. */
void heddle_token_want(uint32_t device, uint64_t estimate_ns);
void heddle_token_unwant(uint32_t device);

/* Whether no other member waits with a longer launch that fits into the gap. */
bool heddle_token_best(uint32_t device, uint64_t estimate_ns, uint64_t gap_ns, uint32_t margin_ppm);

/*
 * Takes the token for a time, at most longest_ns: the claim to give back, 0 = somebody else has it.
 * One that is not given back runs out, so that a holder that died costs a moment.
 */
uint64_t heddle_token_claim(uint32_t device, uint64_t now_ns, uint64_t length_ns,
                            uint64_t longest_ns);
void heddle_token_release(uint32_t device, uint64_t claim);

/* When the present claim runs out: in the past if there is none, never if no claim is possible. */
uint64_t heddle_token_expiry(uint32_t device);

void heddle_token_reset(void);

#endif /* HEDDLE_TOKEN_H */
