/* Exchanging what stands at a fixed address while others look at it. */
#ifndef HEDDLE_PAGES_H
#define HEDDLE_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/* Maps a descriptor at this address, in place of what is there. */
bool heddle_pages_show(void *address, size_t size, int protection, int descriptor);

/*
 * Puts a private copy there of what is there, after edit() has changed it. False leaves all as it is.
 */
bool heddle_pages_keep(void *address, size_t size, int protection, void (*edit)(void *copy));

/* Puts zeroes there. */
void heddle_pages_blank(void *address, size_t size, int protection);

#endif /* HEDDLE_PAGES_H */
