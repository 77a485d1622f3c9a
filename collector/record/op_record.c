/* SPDX-License-Identifier: Apache-2.0 */
#include "record/op_record.h"

#include <math.h>
#include <string.h>

#include "base/json_text.h"
#include "error.h"
#include "record/gpu_record.h"

#define PRINTED_WHOLE_MAX 1e10 /* larger numbers are printed with all digits and an exponent */

static void op_record_take_tensor(struct op_values *v, struct op_value *out)
{
    out->type = get_u8(&v->bytes);
    out->count = get_u8(&v->bytes);
    if (out->count > OP_DIMENSIONS_MAX)
        v->bytes.failed = true;
    for (uint32_t i = 0; i < out->count && !v->bytes.failed; i++)
        out->sizes[i] = get_varint(&v->bytes);
}

static void op_record_take_list(struct op_values *v, struct op_value *out)
{
    uint64_t count = get_varint(&v->bytes);
    if (v->list_left || count > RECORD_BYTES_MAX) /* each value takes a byte at least */
        v->bytes.failed = true;
    out->count = v->list_left = (uint32_t)count;
}

/* Reads the value after its first byte. */
static void take_rest(struct op_values *v, struct op_value *out)
{
    uint64_t bits;
    switch (out->kind) {
    case OP_TENSOR: op_record_take_tensor(v, out); break;
    case OP_INT: out->number = unzigzag(get_varint(&v->bytes)); break;
    case OP_DOUBLE:
        bits = get_u64(&v->bytes);
        memcpy(&out->fraction, &bits, sizeof bits);
        break;
    case OP_BOOL: out->number = get_u8(&v->bytes) != 0; break;
    case OP_LIST: op_record_take_list(v, out); break;
    default: v->bytes.failed |= out->kind > OP_CUT; break;
    }
}

int op_values_next(struct op_values *v, struct op_value *out)
{
    if (v->bytes.position == v->bytes.length)
        return v->list_left ? GPUPROF_DAMAGED : 0;
    bool is_listed = v->list_left > 0;
    out->kind = (enum op_value_kind)get_u8(&v->bytes);
    take_rest(v, out);
    if (v->bytes.failed)
        return GPUPROF_DAMAGED;
    v->list_left -= is_listed;
    if (out->kind == OP_CUT) {
        v->bytes.position = v->bytes.length;
        v->list_left = 0;
    }
    return 1;
}

/* The types as in PyTorch's own traces, by c10::ScalarType. */
static WORDS(op_type, NULL, "unsigned char", "signed char", "short int", "int", "long int",
             "c10::Half", "float", "double", "c10::complex<c10::Half>", "c10::complex<float>",
             "c10::complex<double>", "bool", "c10::qint8", "c10::quint8", "c10::qint32",
             "c10::BFloat16", "c10::quint4x2", "c10::quint2x4", "c10::bits1x8", "c10::bits2x4",
             "c10::bits4x2", "c10::bits8", "c10::bits16", "c10::Float8_e5m2", "c10::Float8_e4m3fn",
             "c10::Float8_e5m2fnuz", "c10::Float8_e4m3fnuz", "short unsigned int", "unsigned int",
             "long unsigned int");

/* ---- JSON as in PyTorch's traces ------------------------------------------------------------- */

/* Ends a list; `separator` is what would precede the next element. */
static char *op_record_put_end(char *out, const char *separator)
{
    return stpcpy(out, *separator == '[' ? "[]" : "]");
}

static char *put_sizes(char *out, const struct op_value *value)
{
    const char *separator = "[";
    for (uint32_t i = 0; value->kind == OP_TENSOR && i < value->count; i++) {
        out = json_decimal(stpcpy(out, separator), value->sizes[i]);
        separator = ", ";
    }
    return op_record_put_end(out, separator);
}

/* Bits of the kinds that a list can contain. What was cut off is not known. */
#define TENSORS (1u << OP_TENSOR | 1u << OP_UNDEFINED | 1u << OP_UNREAD | 1u << OP_CUT)
#define KEPT    (1u << OP_INT | 1u << OP_DOUBLE | 1u << OP_BOOL)
#define NUMBERS (KEPT | 1u << OP_SCALAR | 1u << OP_CUT)

/* Whether all further values of the current list are of these kinds; `v` is a copy. */
static bool is_all(struct op_values v, unsigned kinds)
{
    struct op_value value;
    while (v.list_left && op_values_next(&v, &value) > 0)
        if (!(kinds >> value.kind & 1))
            return false;
    return true;
}

char *op_put_type(char *out, struct op_values *v, const struct op_value *value)
{
    const char *type = "";
    if (value->kind == OP_TENSOR)
        type = op_type_text(value->type);
    else if (NUMBERS >> value->kind & 1)
        type = "Scalar";
    else if (value->kind == OP_LIST)
        type = is_all(*v, NUMBERS) ? "ScalarList" : is_all(*v, TENSORS) ? "TensorList" : "";
    *out++ = '"';
    return stpcpy(stpcpy(out, type ? type : ""), "\"");
}

/* Whole floating-point numbers end with a point, as PyTorch prints them. */
static char *op_record_put_number(char *out, const struct op_value *value)
{
    if (value->kind == OP_BOOL)
        return stpcpy(out, value->number ? "True" : "False");
    if (value->kind == OP_INT) {
        uint64_t number = (uint64_t)value->number;
        return json_decimal(value->number < 0 ? stpcpy(out, "-") : out,
                            value->number < 0 ? -number : number);
    }
    if (fabs(value->fraction) < PRINTED_WHOLE_MAX && trunc(value->fraction) == value->fraction)
        return out + sprintf(out, "%.0f.", value->fraction);
    return out + sprintf(out, "%.17g", value->fraction);
}

/* A list is empty in the output unless all its values are known. */
char *op_put_numbers(char *out, struct op_values *v, const struct op_value *value)
{
    const char *separator = "[";
    struct op_value part;
    *out++ = '"';
    if (value->kind == OP_LIST && is_all(*v, KEPT)) {
        for (; v->list_left && op_values_next(v, &part) > 0; separator = ", ")
            out = op_record_put_number(stpcpy(out, separator), &part);
        out = op_record_put_end(out, separator);
    } else if (KEPT >> value->kind & 1) {
        out = op_record_put_number(out, value);
    }
    *out++ = '"';
    return out;
}

/* The sizes of a tensor, or of tensors in a list; other lists are empty. */
char *op_put_dims(char *out, struct op_values *v, const struct op_value *value)
{
    struct op_value part;
    const char *separator = "[";
    if (value->kind != OP_LIST)
        return put_sizes(out, value);
    bool is_shown = is_all(*v, TENSORS);
    while (v->list_left && op_values_next(v, &part) > 0) {
        if (!is_shown || part.kind == OP_CUT)
            continue;
        out = put_sizes(stpcpy(out, separator), &part);
        separator = ", ";
    }
    return op_record_put_end(out, separator);
}

char *op_put(char *out, const char *bytes, uint32_t byte_count, op_put_fn *put)
{
    struct op_values v = {.bytes = byte_reader((const uint8_t *)bytes, byte_count)};
    struct op_value value;
    const char *separator = "[";
    while (op_values_next(&v, &value) > 0 && value.kind != OP_CUT) {
        out = put(stpcpy(out, separator), &v, &value);
        while (v.list_left && op_values_next(&v, &value) > 0)
            ;
        separator = ", ";
    }
    return op_record_put_end(out, separator);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_tensor(const struct op_value *value, FILE *out)
{
    const char *type = op_type_text(value->type);
    if (type)
        fputs(type, out);
    else
        fprintf(out, "type_%u", value->type);
    for (uint32_t i = 0; i < value->count; i++)
        fprintf(out, "%c%llu", i ? ',' : '[', (unsigned long long)value->sizes[i]);
    fputs(value->count ? "]" : "[]", out);
}

static void print_value(const struct op_value *value, FILE *out)
{
    static const char *const words[] = {
        [OP_NONE] = "none",     [OP_UNDEFINED] = "undefined", [OP_OTHER] = "other",
        [OP_UNREAD] = "tensor", [OP_SCALAR] = "number",       [OP_CUT] = "..."};
    switch (value->kind) {
    case OP_TENSOR: print_tensor(value, out); break;
    case OP_INT: fprintf(out, "%lld", (long long)value->number); break;
    case OP_DOUBLE: fprintf(out, "%.17g", value->fraction); break;
    case OP_BOOL: fputs(value->number ? "true" : "false", out); break;
    case OP_LIST: fputs(value->count ? "(" : "()", out); break;
    default: fputs(words[value->kind], out); break;
    }
}

void op_values_print(const struct record *r, FILE *out)
{
    struct op_values v = {.bytes = byte_reader(r->bytes, r->byte_count)};
    struct op_value value;
    int result;
    bool is_first = true, was_listed = false;
    while ((result = op_values_next(&v, &value)) > 0) {
        fputs(is_first ? "" : ", ", out);
        print_value(&value, out);
        is_first = value.kind == OP_LIST && value.count;
        if (was_listed && !v.list_left)
            fputc(')', out);
        was_listed = v.list_left > 0;
    }
    if (result < 0)
        fputs(is_first ? "damaged" : ", damaged", out);
}
