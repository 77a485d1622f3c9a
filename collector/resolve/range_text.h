/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the texts of ranges of frameworks. PyTorch's emit_nvtx has one form for an operator or
 * label:
 *
 *     NAME[, seq = N], op_id = N[, LISTS]
 *
 * XLA has `XlaModule:#..hlo_module=NAME,program_id=N#` and `Thunk:#[name=TEXT,]hlo_op=NAME#`; vLLM
 * and SGLang have a Python dictionary that begins with `{'Module': 'NAME'`. A text that deviates
 * from such a form is an ordinary text. Texts can contain anything, so all functions take time in
 * proportion to their length and store nothing.
 */
#ifndef GPUPROF_COLLECTOR_RANGE_TEXT_H
#define GPUPROF_COLLECTOR_RANGE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

/* An operator of emit_nvtx. */
struct range_op {
    uint32_t name_bytes; /* length of the name, with which the text begins */
    bool is_label;       /* it is a label, not an operator: see range_text_op */
    uint64_t id;
    uint64_t sequence; /* autograd sequence number + 1; 0: none */
};

/*
 * Whether the text is an operator's or a label's. It is a label if it has no sequence number, and
 * no C++ name (namespace::name) or one of the few others that PyTorch uses. Lists are not read.
 */
bool range_text_op(const char *text, uint32_t byte_count, struct range_op *op);

/* Names of functions that evaluate a backward operator: this, then the name of the operator. */
#define RANGE_OP_EVALUATES "autograd::engine::evaluate_function: "

/* Whether operators inside one of this name are traced by torch.compile, and so do no work. */
bool range_op_begins_trace(const char *name, uint32_t byte_count);

#define RANGE_NAME_BYTES(byte_count) ((byte_count) + 17u)

/*
 * Writes the name in a text of one of the forms above to `out`: an operator's name, "XlaModule:
 * NAME", "Thunk: NAME" and " (TEXT)" if there is one, or a module's name. At most
 * RANGE_NAME_BYTES(byte_count). Returns the length; 0: none of the forms.
 */
uint32_t range_text_name(const char *text, uint32_t byte_count, char *out);

enum range_numbers {
    NUMBERS_APART, /* without a letter beside them, or a letter or digit joined by a dot */
    NUMBERS_ALL,
};

/* Writes the text with '*' in place of its numbers to `out`, at most byte_count bytes. Returns the
 * length; 0: it has no such numbers. */
uint32_t range_text_pattern(const char *text, uint32_t byte_count, enum range_numbers which,
                            char *out);

#endif
