/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlsym and dlvsym for x86_64. RTLD_NEXT and RUNPATH depend on who calls the real function, so a
 * look-up that is not ours is passed on by a jump, with the caller's own return address on the
 * stack.
 * A C wrapper works only as long as the compiler makes a tail call: not at -O0.
 *
 * filter(handle, name, [version,] caller) returns a pair: rdx != 0: rax is the answer; else jump.
 */
#if defined(__x86_64__)
    .text

    .globl dlsym
    .type dlsym, @function
dlsym:
    .cfi_startproc
    endbr64
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    movq 24(%rsp), %rdx
    call dlsym_filter
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    testq %rdx, %rdx
    jne 1f
    movq real_dlsym(%rip), %rax
    jmp *%rax
1:  ret
    .cfi_endproc
    .size dlsym, .-dlsym

    .globl dlvsym
    .type dlvsym, @function
dlvsym:
    .cfi_startproc
    endbr64
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    pushq %rdx
    .cfi_adjust_cfa_offset 8
    movq 24(%rsp), %rcx
    call dlvsym_filter
    movq %rdx, %r8
    popq %rdx
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    testq %r8, %r8
    jne 1f
    movq real_dlvsym(%rip), %rax
    jmp *%rax
1:  ret
    .cfi_endproc
    .size dlvsym, .-dlvsym

    .hidden dlsym_filter
    .hidden dlvsym_filter
    .hidden real_dlsym
    .hidden real_dlvsym
#endif
    .section .note.GNU-stack,"",%progbits
