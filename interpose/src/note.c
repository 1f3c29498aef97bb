#include "note.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "heddle/abi.h"
#include "locate.h"

__attribute__((section(".note.heddle"), used, aligned(4))) static const struct heddle_note note = {
    .header = {.n_namesz = sizeof("Heddle"),
               .n_descsz = sizeof(uint32_t),
               .n_type = HEDDLE_NOTE_TYPE},
    .name = "Heddle",
    .abi_version = HEDDLE_ABI_VERSION,
};

/* Looks through one segment of notes; the file may be anybody's, so every length is checked. */
static bool has_note(const unsigned char *bytes, size_t size) {
    while (size >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr header;
        size_t step = sizeof(header);

        memcpy(&header, bytes, sizeof(header));
        if (header.n_namesz > size || header.n_descsz > size) {
            return false;
        }
        if (header.n_type == HEDDLE_NOTE_TYPE && header.n_namesz == sizeof("Heddle") &&
            size >= sizeof(struct heddle_note) &&
            memcmp(bytes + sizeof(header), "Heddle", sizeof("Heddle")) == 0) {
            return true;
        }
        step += (header.n_namesz + 3U) & ~(size_t)3U;
        step += (header.n_descsz + 3U) & ~(size_t)3U;
        if (step > size) {
            return false;
        }
        bytes += step;
        size -= step;
    }
    return false;
}

static bool file_has_note(int file) {
    Elf64_Ehdr elf;
    unsigned char bytes[2048];

    if (pread(file, &elf, sizeof(elf), 0) != (ssize_t)sizeof(elf) ||
        memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 || elf.e_ident[EI_CLASS] != ELFCLASS64 ||
        elf.e_phentsize != sizeof(Elf64_Phdr)) {
        return false;
    }
    for (unsigned i = 0; i < elf.e_phnum && i < 64; i++) {
        Elf64_Phdr segment;
        const off_t at = (off_t)(elf.e_phoff + (uint64_t)i * sizeof(segment));
        ssize_t got = 0;

        if (pread(file, &segment, sizeof(segment), at) != (ssize_t)sizeof(segment)) {
            return false;
        }
        if (segment.p_type != PT_NOTE) {
            continue;
        }
        got =
            pread(file, bytes, segment.p_filesz < sizeof(bytes) ? segment.p_filesz : sizeof(bytes),
                  (off_t)segment.p_offset);
        if (got > 0 && has_note(bytes, (size_t)got)) {
            return true;
        }
    }
    return false;
}

bool heddle_locate_is_interposer(const char *path) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    bool found = false;

    if (file >= 0) {
        found = file_has_note(file);
        close(file);
    }
    return found;
}
