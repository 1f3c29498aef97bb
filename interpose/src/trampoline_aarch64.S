/*
 * The exports for arm64; see trampoline_x86_64.S. The table is read with acquire order: a hook that
 * was reached through it finds the driver's table filled.
 */
    .macro export index, name
    .globl \name
    .type \name, %function
    .p2align 4
\name:
.Lexport\index:
    hint #34 /* bti c */
    adrp x16, heddle_entry + 8 * \index
    add x16, x16, :lo12:heddle_entry + 8 * \index
    ldar x16, [x16]
    br x16
    .size \name, . - \name
    .endm

    .macro lazy index
    .p2align 4
.Llazy\index:
    hint #34 /* bti c */
    mov w17, #\index
    b .Lresolve
    .endm

/* The fast path of a launch; see trampoline_x86_64.S. x16 and x17 are free for such code. */
    .macro launch index, name
    .globl \name
    .type \name, %function
    .p2align 4
\name:
.Lexport\index:
    hint #34 /* bti c */
#ifndef HEDDLE_NO_FAST_PATH
    mrs x16, tpidr_el0
    adrp x17, :gottprel:heddle_thread
    ldr x17, [x17, :gottprel_lo12:heddle_thread]
    add x16, x16, x17
    ldr x17, [x16]
    add x17, x17, #1
    str x17, [x16]
    tbnz x17, #63, 1f
    adrp x17, heddle_verdict_page + 64
    ldr w17, [x17, :lo12:heddle_verdict_page + 64]
    cbnz w17, 1f
    adrp x16, heddle_real + 8 * \index
    ldr x16, [x16, :lo12:heddle_real + 8 * \index]
    br x16
1:
#endif
    adrp x16, heddle_entry + 8 * \index
    add x16, x16, :lo12:heddle_entry + 8 * \index
    ldar x16, [x16]
    br x16
    .size \name, . - \name
    .endm

    .text
#define HEDDLE_SYMBOL_PASS(index, name, base) export index, name
#define HEDDLE_SYMBOL_GATE(index, name, base) launch index, name
#define HEDDLE_SYMBOL_HOOK(index, name, base) export index, name
#include "../gen/symbols.inc"
#undef HEDDLE_SYMBOL_PASS
#undef HEDDLE_SYMBOL_GATE
#undef HEDDLE_SYMBOL_HOOK

#define HEDDLE_SYMBOL_PASS(index, name, base) lazy index
#define HEDDLE_SYMBOL_GATE(index, name, base) lazy index
#define HEDDLE_SYMBOL_HOOK(index, name, base) lazy index
#include "../gen/symbols.inc"
#undef HEDDLE_SYMBOL_PASS
#undef HEDDLE_SYMBOL_GATE
#undef HEDDLE_SYMBOL_HOOK

    .p2align 4
.Lresolve:
    .cfi_startproc
    stp x29, x30, [sp, #-224]!
    .cfi_def_cfa_offset 224
    .cfi_offset x29, -224
    .cfi_offset x30, -216
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    str x8, [sp, #80]
    stp q0, q1, [sp, #96]
    stp q2, q3, [sp, #128]
    stp q4, q5, [sp, #160]
    stp q6, q7, [sp, #192]
    mov w0, w17
    bl heddle_resolve
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldr x8, [sp, #80]
    ldp q0, q1, [sp, #96]
    ldp q2, q3, [sp, #128]
    ldp q4, q5, [sp, #160]
    ldp q6, q7, [sp, #192]
    ldp x29, x30, [sp], #224
    .cfi_def_cfa_offset 0
    .cfi_restore x29
    .cfi_restore x30
    br x16
    .cfi_endproc

    .data
    .p2align 6
    .globl heddle_entry
    .hidden heddle_entry
    .type heddle_entry, %object
heddle_entry:
#define HEDDLE_SYMBOL_PASS(index, name, base) .xword .Llazy##index
#define HEDDLE_SYMBOL_GATE(index, name, base) .xword .Llazy##index
#define HEDDLE_SYMBOL_HOOK(index, name, base) .xword .Llazy##index
#include "../gen/symbols.inc"
#undef HEDDLE_SYMBOL_PASS
#undef HEDDLE_SYMBOL_GATE
#undef HEDDLE_SYMBOL_HOOK
    .size heddle_entry, . - heddle_entry

    .section .data.rel.ro, "aw"
    .p2align 6
    .globl heddle_exports
    .hidden heddle_exports
    .type heddle_exports, %object
heddle_exports:
#define HEDDLE_SYMBOL_PASS(index, name, base) .xword .Lexport##index
#define HEDDLE_SYMBOL_GATE(index, name, base) .xword .Lexport##index
#define HEDDLE_SYMBOL_HOOK(index, name, base) .xword .Lexport##index
#include "../gen/symbols.inc"
#undef HEDDLE_SYMBOL_PASS
#undef HEDDLE_SYMBOL_GATE
#undef HEDDLE_SYMBOL_HOOK
    .size heddle_exports, . - heddle_exports

    .globl heddle_hooks
    .hidden heddle_hooks
    .type heddle_hooks, %object
heddle_hooks:
#define HEDDLE_SYMBOL_PASS(index, name, base) .xword 0
#define HEDDLE_SYMBOL_GATE(index, name, base) .xword heddle_hook_##name
#define HEDDLE_SYMBOL_HOOK(index, name, base) .xword heddle_hook_##name
#include "../gen/symbols.inc"
#undef HEDDLE_SYMBOL_PASS
#undef HEDDLE_SYMBOL_GATE
#undef HEDDLE_SYMBOL_HOOK
    .size heddle_hooks, . - heddle_hooks

    .section .note.GNU-stack, "", %progbits
