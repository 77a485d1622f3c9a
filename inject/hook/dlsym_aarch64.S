/* SPDX-License-Identifier: Apache-2.0 */
/* dlsym and dlvsym for aarch64; see dlsym_x86_64.S. The filter returns its pair in x0, x1. */
#if defined(__aarch64__)
    .text

    .globl dlsym
    .type dlsym, %function
dlsym:
    .cfi_startproc
    hint #34 /* bti c */
    stp x29, x30, [sp, #-32]!
    .cfi_adjust_cfa_offset 32
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    stp x0, x1, [sp, #16]
    mov x29, sp
    mov x2, x30
    bl dlsym_filter
    cbnz x1, 1f
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    .cfi_restore x29
    .cfi_restore x30
    .cfi_adjust_cfa_offset -32
    adrp x16, real_dlsym
    ldr x16, [x16, #:lo12:real_dlsym]
    br x16
    .cfi_adjust_cfa_offset 32
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
1:  ldp x29, x30, [sp], #32
    .cfi_restore x29
    .cfi_restore x30
    .cfi_adjust_cfa_offset -32
    ret
    .cfi_endproc
    .size dlsym, .-dlsym

    .globl dlvsym
    .type dlvsym, %function
dlvsym:
    .cfi_startproc
    hint #34 /* bti c */
    stp x29, x30, [sp, #-48]!
    .cfi_adjust_cfa_offset 48
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    stp x0, x1, [sp, #16]
    str x2, [sp, #32]
    mov x29, sp
    mov x3, x30
    bl dlvsym_filter
    cbnz x1, 1f
    ldp x0, x1, [sp, #16]
    ldr x2, [sp, #32]
    ldp x29, x30, [sp], #48
    .cfi_restore x29
    .cfi_restore x30
    .cfi_adjust_cfa_offset -48
    adrp x16, real_dlvsym
    ldr x16, [x16, #:lo12:real_dlvsym]
    br x16
    .cfi_adjust_cfa_offset 48
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
1:  ldp x29, x30, [sp], #48
    .cfi_restore x29
    .cfi_restore x30
    .cfi_adjust_cfa_offset -48
    ret
    .cfi_endproc
    .size dlvsym, .-dlvsym

    .hidden dlsym_filter
    .hidden dlvsym_filter
    .hidden real_dlsym
    .hidden real_dlvsym
#endif
    .section .note.GNU-stack,"",%progbits
