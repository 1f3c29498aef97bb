/* Telling the daemon what was seen: the rings of samples and of kernels in the client's segment. */
#ifndef HEDDLE_TELL_H
#define HEDDLE_TELL_H

#include <stdint.h>

#include "heddle/abi.h"

/* Both copy all of the record but its sequence. A record that finds its place taken is dropped. */
void heddle_tell_sample(const struct heddle_sample_record *sample);
void heddle_tell_kernel(const struct heddle_kernel_record *kernel);

#endif /* HEDDLE_TELL_H */
