#include "inner.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#include "symbols.h"

#if defined(__x86_64__)
enum { JUMP_SLOT = R_X86_64_JUMP_SLOT, GLOB_DAT = R_X86_64_GLOB_DAT };
#else
enum { JUMP_SLOT = R_AARCH64_JUMP_SLOT, GLOB_DAT = R_AARCH64_GLOB_DAT };
#endif

static const uint32_t launches[] = {
#define HEDDLE_SYMBOL_PASS(index, name, base)
#define HEDDLE_SYMBOL_GATE(index, name, base) (index),
#define HEDDLE_SYMBOL_HOOK(index, name, base)
#include "../gen/symbols.inc"
#undef HEDDLE_SYMBOL_PASS
#undef HEDDLE_SYMBOL_GATE
#undef HEDDLE_SYMBOL_HOOK
};

static bool is_our_launch(uintptr_t address) {
    for (size_t i = 0; i < sizeof(launches) / sizeof(launches[0]); i++) {
        if ((uintptr_t)heddle_exports[launches[i]] == address) {
            return true;
        }
    }
    return false;
}

/* The driver was opened with all its bindings made, so its table of addresses tells. */
static bool any_bound_to_us(uintptr_t base, const Elf64_Rela *list, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes / sizeof(*list); i++) {
        const uint64_t type = ELF64_R_TYPE(list[i].r_info);
        uintptr_t bound = 0;

        if (type != JUMP_SLOT && type != GLOB_DAT) {
            continue;
        }
        memcpy(&bound, (const void *)(base + list[i].r_offset), sizeof(bound));
        if (is_our_launch(bound)) {
            return true;
        }
    }
    return false;
}

/* Some C libraries write addresses into the dynamic section, some leave offsets there. */
static const Elf64_Rela *address_in(uintptr_t base, uint64_t value) {
    return (const Elf64_Rela *)(value < base ? base + value : value);
}

bool heddle_inner_calls(void *driver) {
    struct link_map *map = NULL;
    uint64_t values[2][2] = {{0}}; /* address and size of the two lists of relocations */

    if (dlinfo(driver, RTLD_DI_LINKMAP, &map) != 0 || map == NULL) {
        return false;
    }
    for (const Elf64_Dyn *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        switch (entry->d_tag) {
        case DT_JMPREL:
            values[0][0] = entry->d_un.d_ptr;
            break;
        case DT_PLTRELSZ:
            values[0][1] = entry->d_un.d_val;
            break;
        case DT_RELA:
            values[1][0] = entry->d_un.d_ptr;
            break;
        case DT_RELASZ:
            values[1][1] = entry->d_un.d_val;
            break;
        default:
            break;
        }
    }
    for (int i = 0; i < 2; i++) {
        if (values[i][0] != 0 &&
            any_bound_to_us(map->l_addr, address_in(map->l_addr, values[i][0]), values[i][1])) {
            return true;
        }
    }
    return false;
}
