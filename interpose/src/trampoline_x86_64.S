/*
 * The exports for x86-64. Every name is one indirect jump, so that no argument is touched and no
 * prototype is needed. The first call of any name goes through its lazy stub, which saves all
 * registers that can carry arguments and asks heddle_resolve where to go.
 */
    .macro export index, name
    .globl \name
    .type \name, @function
    .p2align 4
\name:
.Lexport\index:
    jmp *heddle_entry+8*\index(%rip)
    .size \name, . - \name
    .endm

    .macro lazy index
    .p2align 4
.Llazy\index:
    movl $\index, %r11d
    jmp .Lresolve
    .endm

/*
 * A launch is counted in the thread's own memory, and jumps on while the process's gate word is zero.
 * Written here because a compiler copies the arguments on the stack onto themselves before such a jump.
 * The count is below zero until a hook gave the thread a counter, so before the tables are filled, and
 * in a disabled interposer, this is the plain trampoline; and now and then, for the slow path to tell
 * it. The slow path does not count again what was counted here. The gate word goes through a register: compared in memory with a constant it costs the
 * processor a step more. The count is the first member of heddle_thread; the word is where struct
 * heddle_verdict_segment has process.gate. launch.c asserts both.
 */
    .macro launch index, name
    .globl \name
    .type \name, @function
    .p2align 6
\name:
.Lexport\index:
#ifndef HEDDLE_NO_FAST_PATH
    movq heddle_thread@gottpoff(%rip), %rax
    addq $1, %fs:(%rax)
    js 1f
    movl heddle_verdict_page+64(%rip), %r11d
    testl %r11d, %r11d
    jnz 1f
    jmp *heddle_real+8*\index(%rip)
1:
#endif
    jmp *heddle_entry+8*\index(%rip)
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
    pushq %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    pushq %rdi
    pushq %rsi
    pushq %rdx
    pushq %rcx
    pushq %r8
    pushq %r9
    pushq %r10
    pushq %rax
    subq $128, %rsp
    movups %xmm0, (%rsp)
    movups %xmm1, 16(%rsp)
    movups %xmm2, 32(%rsp)
    movups %xmm3, 48(%rsp)
    movups %xmm4, 64(%rsp)
    movups %xmm5, 80(%rsp)
    movups %xmm6, 96(%rsp)
    movups %xmm7, 112(%rsp)
    movl %r11d, %edi
    call heddle_resolve
    movq %rax, %r11
    movups (%rsp), %xmm0
    movups 16(%rsp), %xmm1
    movups 32(%rsp), %xmm2
    movups 48(%rsp), %xmm3
    movups 64(%rsp), %xmm4
    movups 80(%rsp), %xmm5
    movups 96(%rsp), %xmm6
    movups 112(%rsp), %xmm7
    addq $128, %rsp
    popq %rax
    popq %r10
    popq %r9
    popq %r8
    popq %rcx
    popq %rdx
    popq %rsi
    popq %rdi
    popq %rbp
    .cfi_def_cfa %rsp, 8
    jmp *%r11
    .cfi_endproc

    .data
    .p2align 6
    .globl heddle_entry
    .hidden heddle_entry
    .type heddle_entry, @object
heddle_entry:
#define HEDDLE_SYMBOL_PASS(index, name, base) .quad .Llazy##index
#define HEDDLE_SYMBOL_GATE(index, name, base) .quad .Llazy##index
#define HEDDLE_SYMBOL_HOOK(index, name, base) .quad .Llazy##index
#include "../gen/symbols.inc"
#undef HEDDLE_SYMBOL_PASS
#undef HEDDLE_SYMBOL_GATE
#undef HEDDLE_SYMBOL_HOOK
    .size heddle_entry, . - heddle_entry

    .section .data.rel.ro, "aw"
    .p2align 6
    .globl heddle_exports
    .hidden heddle_exports
    .type heddle_exports, @object
heddle_exports:
#define HEDDLE_SYMBOL_PASS(index, name, base) .quad .Lexport##index
#define HEDDLE_SYMBOL_GATE(index, name, base) .quad .Lexport##index
#define HEDDLE_SYMBOL_HOOK(index, name, base) .quad .Lexport##index
#include "../gen/symbols.inc"
#undef HEDDLE_SYMBOL_PASS
#undef HEDDLE_SYMBOL_GATE
#undef HEDDLE_SYMBOL_HOOK
    .size heddle_exports, . - heddle_exports

    .globl heddle_hooks
    .hidden heddle_hooks
    .type heddle_hooks, @object
heddle_hooks:
#define HEDDLE_SYMBOL_PASS(index, name, base) .quad 0
#define HEDDLE_SYMBOL_GATE(index, name, base) .quad heddle_hook_##name
#define HEDDLE_SYMBOL_HOOK(index, name, base) .quad heddle_hook_##name
#include "../gen/symbols.inc"
#undef HEDDLE_SYMBOL_PASS
#undef HEDDLE_SYMBOL_GATE
#undef HEDDLE_SYMBOL_HOOK
    .size heddle_hooks, . - heddle_hooks

    .section .note.GNU-stack, "", @progbits
