/*
 * The tables behind the exports. An export is one jump through its word in heddle_entry; that word
 * first leads to the resolver, then to the hook if the name has one, else to the driver.
 */
#ifndef HEDDLE_SYMBOLS_H
#define HEDDLE_SYMBOLS_H

#include <stdint.h>

enum heddle_symbol_index {
#define HEDDLE_SYMBOL_PASS(index, name, base) HEDDLE_SYM_##name = (index),
#define HEDDLE_SYMBOL_GATE(index, name, base) HEDDLE_SYM_##name = (index),
#define HEDDLE_SYMBOL_HOOK(index, name, base) HEDDLE_SYM_##name = (index),
#include "../gen/symbols.inc"
#undef HEDDLE_SYMBOL_PASS
#undef HEDDLE_SYMBOL_GATE
#undef HEDDLE_SYMBOL_HOOK
    HEDDLE_SYM_COUNT
};

typedef void (*heddle_code)(void);

extern heddle_code heddle_entry[HEDDLE_SYM_COUNT];         /* where the exports jump to */
extern const heddle_code heddle_exports[HEDDLE_SYM_COUNT]; /* the exports themselves */
extern const heddle_code heddle_hooks[HEDDLE_SYM_COUNT];   /* the hooks, NULL for most */
extern heddle_code heddle_real[HEDDLE_SYM_COUNT];          /* the driver's functions */

struct heddle_symbol_name {
    const char *name;
    uint32_t base; /* length of the name without version and stream suffix */
};

extern const struct heddle_symbol_name heddle_names[HEDDLE_SYM_COUNT];

/*
 * HEDDLE_HOOK(name, (parameters)) { ... } defines the hook of an export; cmd/gensyms looks for it
 * at the start of a line. HEDDLE_REAL(name)(...) calls the driver's function with the hook's type,
 * HEDDLE_DRIVER(type, name)(...) one that has no hook.
 */
#define HEDDLE_HOOK(name, parameters)                                                              \
    heddle_result heddle_hook_##name parameters;                                                   \
    heddle_result heddle_hook_##name parameters
#define HEDDLE_REAL(name) ((__typeof__(&heddle_hook_##name))heddle_real[HEDDLE_SYM_##name])
#define HEDDLE_DRIVER(type, name) ((type)heddle_real[HEDDLE_SYM_##name])

#endif /* HEDDLE_SYMBOLS_H */
