/* SPDX-License-Identifier: Apache-2.0 */
/* Starts for aarch64: what C returns goes to where x8 says; see op_events.c. */
#if defined(__aarch64__)
    .text

    .macro start name
    .globl \name\()_stub
    .hidden \name\()_stub
    .hidden \name\()_begin
    .type \name\()_stub, %function
\name\()_stub:
    .cfi_startproc
    hint #34 /* bti c */
    stp x29, x30, [sp, #-32]!
    .cfi_adjust_cfa_offset 32
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    str x8, [sp, #16]
    mov x29, sp
    bl \name\()_begin
    ldr x8, [sp, #16]
    str x0, [x8]
    ldp x29, x30, [sp], #32
    .cfi_restore x29
    .cfi_restore x30
    .cfi_adjust_cfa_offset -32
    ret
    .cfi_endproc
    .size \name\()_stub, .-\name\()_stub
    .endm

    start op_start_mark
    start op_start_plain
    start op_start_full
    start op_start_stacks
#endif
    .section .note.GNU-stack,"",%progbits
