/* Telling the daemon what was seen: the rings of samples and of kernels in the client's segment. */
#ifndef HEDDLE_TELL_H
#define HEDDLE_TELL_H

#include <stdint.h>

#include "heddle/abi.h"

/* Both copy all of the record but its sequence. A record that finds its place taken is dropped. */
void heddle_tell_sample(const struct heddle_sample_record *sample);
void heddle_tell_kernel(const struct heddle_kernel_record *kernel);

/* As above, and counts what it drops: whoever looks at a timeline shall know what is missing. */
void heddle_tell_trace(const struct heddle_trace_record *record);

#endif /* HEDDLE_TELL_H */
