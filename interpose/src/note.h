/* The ELF note by which one build of the interposer knows another. */
#ifndef HEDDLE_NOTE_H
#define HEDDLE_NOTE_H

#include <elf.h>
#include <stdint.h>

enum { HEDDLE_NOTE_TYPE = 1 };

struct heddle_note {
    Elf64_Nhdr header;
    char name[8]; /* "Heddle" and padding */
    uint32_t abi_version;
};

#endif /* HEDDLE_NOTE_H */
