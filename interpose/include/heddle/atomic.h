/* Named atomic accesses to shared words: the order is part of the name, so a review can see it. */
#ifndef HEDDLE_ATOMIC_H
#define HEDDLE_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#define HEDDLE_DEFINE_ATOMICS(bits)                                                                \
    static inline uint##bits##_t heddle_load_relaxed##bits(const uint##bits##_t *p) {              \
        return __atomic_load_n(p, __ATOMIC_RELAXED);                                               \
    }                                                                                              \
    static inline uint##bits##_t heddle_load_acquire##bits(const uint##bits##_t *p) {              \
        return __atomic_load_n(p, __ATOMIC_ACQUIRE);                                               \
    }                                                                                              \
    static inline uint##bits##_t heddle_load_seq_cst##bits(const uint##bits##_t *p) {              \
        return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                               \
    }                                                                                              \
    static inline void heddle_store_relaxed##bits(uint##bits##_t *p, uint##bits##_t v) {           \
        __atomic_store_n(p, v, __ATOMIC_RELAXED);                                                  \
    }                                                                                              \
    static inline void heddle_store_release##bits(uint##bits##_t *p, uint##bits##_t v) {           \
        __atomic_store_n(p, v, __ATOMIC_RELEASE);                                                  \
    }                                                                                              \
    static inline uint##bits##_t heddle_add_seq_cst##bits(uint##bits##_t *p, uint##bits##_t v) {   \
        return __atomic_add_fetch(p, v, __ATOMIC_SEQ_CST);                                         \
    }                                                                                              \
    static inline uint##bits##_t heddle_swap_seq_cst##bits(uint##bits##_t *p, uint##bits##_t v) {  \
        return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                                        \
    }                                                                                              \
    static inline bool heddle_cas_seq_cst##bits(uint##bits##_t *p, uint##bits##_t *expected,       \
                                                uint##bits##_t v) {                                \
        return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST,                \
                                           __ATOMIC_SEQ_CST);                                      \
    }

HEDDLE_DEFINE_ATOMICS(32)
HEDDLE_DEFINE_ATOMICS(64)

#endif /* HEDDLE_ATOMIC_H */
