/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What frameworks write into the texts of their ranges. PyTorch's emit_nvtx has one form, of an
 * operator or label:
 *
 *     NAME[, seq = N], op_id = N[, sizes = [[N, N], [], ..]][, input_op_ids = [(N,N), ..]]
 *
 * XLA has `XlaModule:#..hlo_module=NAME,program_id=N#` and `Thunk:#[name=TEXT,]hlo_op=NAME#`; vLLM
 * and SGLang have a dictionary of Python that begins with `{'Module': 'NAME'`. What is not exactly
 * of such a form is a text like any other. Texts are anything: all here takes time in proportion to
 * their length, and keeps nothing.
 */
#ifndef GPUPROF_COLLECTOR_RANGE_TEXT_H
#define GPUPROF_COLLECTOR_RANGE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "record.h"

/* The library cuts longer texts than 4096 bytes, at the end of a character. */
#define RANGE_TEXT_CUT_BYTES 4093

/* An operator of emit_nvtx. */
struct range_op {
    uint32_t name_bytes; /* with so many the text begins */
    bool is_label;       /* its text does not say so: see range_text_op */
    uint64_t id;
    uint64_t sequence;    /* 1 more than it; 0: none */
    uint32_t input_bytes; /* 0: no sizes */
    /* As in an OP_INPUTS record, tensors of no known type; what has no sizes is OP_OTHER. */
    uint8_t inputs[RECORD_BYTES_MAX];
};

/*
 * Is the text an operator's? One with neither a sequence number nor sizes, whose name is none of
 * C++ (namespace::name) or of the few others that PyTorch itself gives, is a label.
 */
bool range_text_op(const char *text, uint32_t byte_count, struct range_op *op);

/* The name of what evaluates a backward operator begins so; that of the operator follows. */
#define RANGE_OP_EVALUATES "autograd::engine::evaluate_function: "

/* Does torch.compile look at the operators inside one of this name? They do no work then. */
bool range_op_begins_trace(const char *name, uint32_t byte_count);

#define RANGE_NAME_BYTES(byte_count) ((byte_count) + 16u)

/*
 * What the text is about, where it has one of the forms above: an operator's name, "XlaModule:
 * NAME", "Thunk: NAME" and, if there is one, " (TEXT)", or the name of a module. At most
 * RANGE_NAME_BYTES(byte_count) at `out`; how many; 0: it has none of the forms.
 */
uint32_t range_text_name(const char *text, uint32_t byte_count, char *out);

enum range_numbers {
    NUMBERS_APART, /* with neither a letter nor, joined by a dot, one or a digit beside them */
    NUMBERS_ALL,
};

/* The text with '*' in place of its numbers, at most byte_count bytes at `out`; how many, 0: it has
 * no such numbers. */
uint32_t range_text_pattern(const char *text, uint32_t byte_count, enum range_numbers which,
                            char *out);

/*
 * Names that ranges and labels have, as patterns of --step-range, for one who has asked for a name
 * that none has: those that are there most often.
 */
#define STEP_NAMES_MAX       32 /* that are counted: the first ones */
#define STEP_NAME_BYTES      64 /* of a longer one its beginning, and '*' */
#define STEP_NAMES_TOLD      5
#define STEP_NAMES_ALL_BYTES (STEP_NAMES_TOLD * (STEP_NAME_BYTES + 4) + 24)

struct step_name {
    char pattern[STEP_NAME_BYTES]; /* with '*' for its numbers */
    uint64_t count;
};

struct step_names {
    struct step_name list[STEP_NAMES_MAX];
    uint32_t count;
};

void step_names_take(struct step_names *n, const char *text);

/* "; the names are 'load', 'step *'", or "". Returns `text`. */
const char *step_names_text(struct step_names *n, char text[STEP_NAMES_ALL_BYTES]);

#endif
