#include "pages.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * The system calls themselves: to the race detector a call of mmap() writes the memory, but the
 * exchange is atomic for whoever reads it, word by word, and readers expect either.
 */

bool heddle_pages_show(void *address, size_t size, int protection, int descriptor) {
    return syscall(SYS_mmap, address, size, protection, MAP_SHARED | MAP_FIXED, descriptor, 0L) !=
           -1;
}

bool heddle_pages_keep(void *address, size_t size, int protection, void (*edit)(void *copy)) {
    void *copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (copy == MAP_FAILED) {
        return false;
    }
    memcpy(copy, address, size);
    edit(copy);
    if (mprotect(copy, size, protection) != 0 ||
        syscall(SYS_mremap, copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, address) == -1) {
        munmap(copy, size);
        return false;
    }
    return true;
}

void heddle_pages_blank(void *address, size_t size, int protection) {
    (void)syscall(SYS_mmap, address, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                  0L);
}
