#include "client.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pages.h"

union heddle_verdict_page heddle_verdict_page;

static struct heddle_client_segment private_segment;
struct heddle_client_segment *heddle_client_now = &private_segment;
static int segment_file = -1;

static void write_header(struct heddle_client_segment *segment) {
    segment->header.magic = HEDDLE_MAGIC_CLIENT;
    segment->header.abi_version = HEDDLE_ABI_VERSION;
    segment->header.size = sizeof(*segment);
    segment->process.pid = (uint32_t)getpid();
}

/*
 * The lock tells others that this process lives, without a daemon: the kernel drops it with the
 * process, at any instruction and in any PID namespace.
 */
static bool lock_and_seal(int file) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

    return fcntl(file, F_SETLK, &lock) == 0 && fcntl(file, F_ADD_SEALS, seals) == 0;
}

/*
 * Takes over what was counted and logged before there was a segment. Nothing was measured then: the
 * pages for that stay untouched.
 */
static void publish(struct heddle_client_segment *segment) {
    memcpy(segment, &private_segment, offsetof(struct heddle_client_segment, samples));
    write_header(segment);
    __atomic_store_n(&heddle_client_now, segment, __ATOMIC_RELEASE);
}

bool heddle_client_create(void) {
    const int file = memfd_create("heddle-client", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    void *mapped = MAP_FAILED;

    if (file < 0) {
        return false;
    }
    if (ftruncate(file, sizeof(struct heddle_client_segment)) == 0) {
        mapped = mmap(NULL, sizeof(struct heddle_client_segment), PROT_READ | PROT_WRITE,
                      MAP_SHARED, file, 0);
    }
    if (mapped == MAP_FAILED || !lock_and_seal(file)) {
        if (mapped != MAP_FAILED) {
            munmap(mapped, sizeof(struct heddle_client_segment));
        }
        close(file);
        return false;
    }
    segment_file = file;
    publish(mapped);
    return true;
}

int heddle_client_descriptor(void) {
    return segment_file;
}

bool heddle_client_sealed(int descriptor, uint64_t size) {
    struct stat status;
    const int seals = fcntl(descriptor, F_GET_SEALS);

    return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(descriptor, &status) == 0 &&
           status.st_size >= 0 && (uint64_t)status.st_size >= size;
}

bool heddle_client_adopt_verdict(int descriptor) {
    const struct heddle_segment_header *header = NULL;
    bool good = false;

    if (!heddle_client_sealed(descriptor, sizeof(struct heddle_verdict_segment))) {
        return false;
    }
    header =
        mmap(NULL, sizeof(struct heddle_verdict_segment), PROT_READ, MAP_SHARED, descriptor, 0);
    if (header == MAP_FAILED) {
        return false;
    }
    good = header->magic == HEDDLE_MAGIC_VERDICT && header->abi_version >= HEDDLE_ABI_OLDEST;
    munmap((void *)(uintptr_t)header, sizeof(struct heddle_verdict_segment));
    return good && heddle_pages_show(&heddle_verdict_page, sizeof(struct heddle_verdict_segment),
                                     PROT_READ, descriptor);
}

static void forget_measuring(void *copy) {
    struct heddle_verdict_segment *verdict = copy;

    verdict->process.gate &= ~(uint32_t)HEDDLE_GATE_MEASURE;
    verdict->process.measure_every = 0;
    verdict->process.trace = 0;
    for (uint32_t i = 0; i < HEDDLE_DEVICES_MAX; i++) {
        verdict->devices[i].gate &= ~(uint32_t)HEDDLE_GATE_MEASURE;
    }
}

void heddle_client_keep_verdict(void) {
    (void)heddle_pages_keep(&heddle_verdict_page, sizeof(heddle_verdict_page), PROT_READ,
                            forget_measuring);
}

void heddle_client_reset(void) {
    struct heddle_client_segment *old = heddle_client();

    memset(&private_segment, 0, sizeof(private_segment));
    __atomic_store_n(&heddle_client_now, &private_segment, __ATOMIC_RELEASE);
    if (old != &private_segment) {
        munmap(old, sizeof(*old));
    }
    if (segment_file >= 0) {
        close(segment_file);
        segment_file = -1;
    }
    heddle_pages_blank(&heddle_verdict_page, sizeof(heddle_verdict_page), PROT_READ);
}
