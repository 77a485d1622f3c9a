/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stays of a kernel's name when a program is built anew. Each form is made of the one before
 * it and leaves something more out, so that names which are equal in one are equal in all that
 * follow. The first form in which two names are equal says how sure it is that they are one kernel.
 *
 * Names are hostile. A form is made in place, is never longer than what it is made of, and takes
 * time linear in that, whatever brackets there are; what is nested deeper than FORM_DEPTH_MAX is
 * left out of template arguments.
 */
#ifndef GPUPROF_COLLECTOR_KERNEL_FORM_H
#define GPUPROF_COLLECTOR_KERNEL_FORM_H

#include <stdbool.h>
#include <stddef.h>

#define FORM_DEPTH_MAX 256

enum kernel_form {
    FORM_EXACT,     /* as recorded, mangled */
    FORM_DEMANGLED, /* as shown */
    FORM_FUNCTION,  /* without parameters and return type */
    FORM_SOURCE,    /* hashes of files, numbers of lambdas, versions of libraries' namespaces */
    FORM_FUNCTORS,  /* of template arguments the classes that say what is done; of a wrapper of
                         CUTLASS's what it wraps */
    FORM_TEMPLATE,  /* without any */
    FORM_TILES,     /* of a tuned family (cuBLAS, cuDNN, CUTLASS, Tensile): tiles, stages ... */
    FORM_OPERATION, /* and its maker: "gemm bf16 tn" */
    FORM_GENERATED, /* ordinals of Triton, Inductor and XLA; NCCL's algorithm and protocol */
    KERNEL_FORMS
};

/*
 * Makes `form`, FORM_FUNCTION or a later one, of the form before it: `length` bytes of any kind but
 * NUL. Its length, which is never larger.
 */
size_t kernel_form_make(enum kernel_form form, char *text, size_t length);

/* "function": for a table and a script. */
const char *kernel_form_text(enum kernel_form form);

/* Are equal names of this form the same code? Else only something of its kind, and so are later
 * forms of names of which this one left something out. */
bool kernel_form_is_sure(enum kernel_form form);

/* Are names that are equal in it told apart by numbers that a compiler gave in an order? */
bool kernel_form_is_numbered(enum kernel_form form);

/* Forms of families of names, which have no templates any more. (kernel_families.c) */
size_t form_tiles(char *text, size_t length);
size_t form_operation(char *text, size_t length);
size_t form_generated(char *text, size_t length);

/* Does the name end in a number that says when a compiler came to it, and not what it is? */
bool kernel_has_ordinal(const char *text, size_t length);

#endif
