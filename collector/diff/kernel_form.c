/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/kernel_form.h"

#include <stdint.h>
#include <string.h>

#define UNNAMED      "(anonymous namespace)"
#define UNNAMED_FORM "{anon}"
#define PLAIN_MAX    32 /* no word of the lists below is longer */

/* ---- brackets -------------------------------------------------------------------------------- */

/* What is open at a place of a name. A closing bracket closes what was opened within, too; one that
 * closes nothing is a character as others. `mark` and `part` are the owner's. */
struct brackets {
    unsigned depth;
    size_t over;        /* open beyond the maximum: what is closed first */
    unsigned counts[4]; /* of each kind that is open */
    uint8_t kind[FORM_DEPTH_MAX];
    size_t mark[FORM_DEPTH_MAX];
    size_t part[FORM_DEPTH_MAX];
};

static const char openers[] = "<([{", closers[] = ">)]}";

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '$' || (unsigned char)c >= 0x80;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t word_length(const char *text, size_t length)
{
    size_t n = 0;
    while (n < length && is_word(text[n]))
        n++;
    return n;
}

static bool starts(const char *text, size_t length, const char *with)
{
    size_t n = strlen(with);
    return length >= n && memcmp(text, with, n) == 0;
}

/* The brackets that are part of an operator's name, behind the word. */
static size_t operator_length(const char *text, size_t length)
{
    size_t n = 0;
    if (starts(text, length, "()") || starts(text, length, "[]") || starts(text, length, "->"))
        return 2;
    while (n < length && n < 3 && (text[n] == '<' || text[n] == '>' || (n && text[n] == '=')))
        n++;
    return n;
}

static bool is_top(const struct brackets *b)
{
    return !b->depth && !b->over;
}

static bool is_within(const struct brackets *b, char opener)
{
    return b->depth && openers[b->kind[b->depth - 1]] == opener;
}

static void open_bracket(struct brackets *b, unsigned kind)
{
    if (b->depth == FORM_DEPTH_MAX) {
        b->over++;
        return;
    }
    b->counts[kind]++;
    b->kind[b->depth++] = (uint8_t)kind;
}

/* Did it close one that is kept? Then its mark is that at `depth` now. */
static bool close_bracket(struct brackets *b, unsigned kind)
{
    bool is_greater = kind == 0 && !is_within(b, '<'); /* as in <(a > b)> */
    if (b->over) {
        b->over--;
        return false;
    }
    if (!b->counts[kind] || is_greater)
        return false;
    do
        b->counts[b->kind[--b->depth]]--;
    while (b->kind[b->depth] != kind);
    return true;
}

/* A word with its operator's brackets, or one character, which may open or close. */
struct token {
    size_t length;
    bool is_word;
    char opened, closed; /* 0: not */
};

static struct token take(struct brackets *b, const char *text, size_t length)
{
    struct token t = {.length = word_length(text, length)};
    t.is_word = t.length > 0;
    if (t.length == strlen("operator") && starts(text, length, "operator"))
        t.length += operator_length(text + t.length, length - t.length);
    if (t.is_word)
        return t;
    t.length = starts(text, length, "->") ? 2 : 1;
    const char *opens = strchr(openers, *text), *closes = strchr(closers, *text);
    if (*text && opens) {
        t.opened = *text;
        open_bracket(b, (unsigned)(opens - openers));
    } else if (*text && closes && t.length == 1) {
        t.closed = close_bracket(b, (unsigned)(closes - closers)) ? *text : '\0';
    }
    return t;
}

/* ---- without parameters and return type ------------------------------------------------------ */

static bool is_operator(const struct token *t, const char *text)
{
    return t->is_word && word_length(text, t->length) == 8 && starts(text, 8, "operator");
}

/* The last bracket at the top opens the parameters, unless a name goes on behind it. */
static size_t function_form(char *text, size_t length)
{
    struct brackets b = {0};
    size_t begin = 0, end = 0;
    bool is_named = false; /* by an operator, behind which a space may stand */
    for (size_t at = 0; at < length;) {
        size_t left = length - at;
        bool top = is_top(&b);
        if (top && starts(text + at, left, UNNAMED)) {
            at += strlen(UNNAMED);
            continue;
        }
        if (top && at > 0 && text[at] == '(' && (!end || text[at - 1] != ')'))
            end = at;
        else if (top && end && text[at - 1] == ')' && starts(text + at, left, "::"))
            end = 0;
        else if (top && !end && text[at] == ' ' && !is_named)
            begin = at + 1;
        struct token t = take(&b, text + at, left);
        is_named = is_operator(&t, text + at);
        at += t.length;
    }
    if (end > begin) {
        memmove(text, text + begin, end - begin);
        return end - begin;
    }
    if (length > 3 && memcmp(text + length - 3, ".kd", 3) == 0)
        return length - 3; /* the descriptor of an AMD kernel */
    return length;
}

/* ---- what a build puts in -------------------------------------------------------------------- */

static size_t span_of(const char *text, size_t length, const char *set)
{
    size_t n = 0;
    while (n < length && text[n] && strchr(set, text[n]))
        n++;
    return n;
}

#define DECIMAL "0123456789"
#define HEX     DECIMAL "abcdef"

/*
 * "_GLOBAL__N__HASH_LENGTH_File_cu_HASH_NUMBER" is nvcc's name of what is in no namespace of a
 * file: the file's part of it; false: it is none.
 */
static bool file_of_hash(const char *word, size_t length, size_t *begin, size_t *end)
{
    static const char *const prefixes[] = {"_GLOBAL__N__", "_INTERNAL_"};
    size_t at = 0;
    for (unsigned i = 0; !at && i < 2; i++)
        at = starts(word, length, prefixes[i]) ? strlen(prefixes[i]) : 0;
    if (!at)
        return false;
    size_t hash = span_of(word + at, length - at, HEX);
    at += hash && at + hash < length && word[at + hash] == '_' ? hash + 1 : 0;
    size_t number = span_of(word + at, length - at, DECIMAL);
    at += number && at + number < length && word[at + number] == '_' ? number + 1 : 0;
    size_t last = length;
    for (size_t to = length; to > at;) {
        size_t from = to;
        while (from > at && word[from - 1] != '_')
            from--;
        if (from == at || span_of(word + from, to - from, HEX) < to - from)
            break;
        last = to = from - 1;
    }
    *begin = at;
    *end = last;
    return true;
}

/* Namespaces that say which version of a library was built in: cub::CUB_200302_800_NS::... */
static bool is_version(const char *word, size_t length)
{
    static const char *const prefixes[] = {"CUB_", "THRUST_", "_V_", "__"};
    for (unsigned i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        size_t n = strlen(prefixes[i]);
        if (starts(word, length, prefixes[i]) && n < length && is_digit(word[n]))
            return span_of(word + n, length - n, DECIMAL "_SMN") == length - n;
    }
    return false;
}

/* Of an unnamed static kernel of HIP: "kernel__static__HASH". */
static size_t without_static(const char *word, size_t length)
{
    static const char mark[] = "__static__", intern[] = "__intern__";
    size_t n = sizeof mark - 1, hash = length;
    while (hash > 0 && strchr(HEX, word[hash - 1]))
        hash--;
    if (hash == length || hash <= n)
        return length;
    bool is_marked =
        memcmp(word + hash - n, mark, n) == 0 || memcmp(word + hash - n, intern, n) == 0;
    return is_marked ? hash - n : length;
}

struct writer {
    char *text;
    size_t length; /* written */
};

static void put(struct writer *w, const char *from, size_t length)
{
    memmove(w->text + w->length, from, length);
    w->length += length;
}

/* A word of `length` bytes at `word`, of which `left` follow; how many of all were taken. */
static size_t put_source_word(struct writer *w, const char *word, size_t length, size_t left)
{
    size_t begin, end;
    bool is_quoted = w->length && w->text[w->length - 1] == '\'';
    if (starts(word + length, left, "::") && is_version(word, length))
        return length + 2;
    if (file_of_hash(word, length, &begin, &end))
        put(w, word + begin, end - begin);
    else if (length == strlen("_NV_ANON_NAMESPACE") && starts(word, length, "_NV_ANON_NAMESPACE"))
        put(w, UNNAMED_FORM, strlen(UNNAMED_FORM));
    else if (is_quoted && starts(word, length, "lambda"))
        put(w, word, strlen("lambda")); /* 'lambda0': LLVM's words for it */
    else
        put(w, word, without_static(word, length));
    return length;
}

/* "__nv_dl_tag<..., 1u>" is a lambda of nvcc's with its number in the file. */
static void drop_lambda_number(struct writer *w)
{
    size_t at = w->length;
    if (!at || w->text[--at] != 'u')
        return;
    while (at > 0 && is_digit(w->text[at - 1]))
        at--;
    if (at >= 2 && memcmp(w->text + at - 2, ", ", 2) == 0)
        w->length = at - 2;
}

static size_t source_form(char *text, size_t length)
{
    struct brackets b = {0};
    struct writer w = {text, 0};
    bool is_tag = false;
    for (size_t at = 0; at < length;) {
        size_t left = length - at;
        if (starts(text + at, left, UNNAMED)) {
            put(&w, UNNAMED_FORM, strlen(UNNAMED_FORM));
            at += strlen(UNNAMED);
            continue;
        }
        if (*(text + at) == '#' && is_within(&b, '{')) {
            at += 1 + span_of(text + at + 1, left - 1, DECIMAL);
            continue;
        }
        struct token t = take(&b, text + at, left);
        if (t.closed == '>' && b.mark[b.depth])
            drop_lambda_number(&w);
        if (t.opened && !b.over)
            b.mark[b.depth - 1] = t.opened == '<' && is_tag;
        is_tag = t.is_word && t.length == 11 && memcmp(text + at, "__nv_dl_tag", 11) == 0;
        size_t word = t.is_word ? word_length(text + at, t.length) : 0;
        if (word == t.length)
            t.length = put_source_word(&w, text + at, word, left - word);
        else
            put(&w, text + at, t.length);
        at += t.length;
    }
    return w.length;
}

/* ---- template arguments ---------------------------------------------------------------------- */

static bool is_one_of(const char *word, size_t length, const char *const *list)
{
    for (; *list; list++)
        if (strlen(*list) == length && memcmp(word, *list, length) == 0)
            return true;
    return false;
}

/* Words of which types are made that say nothing of what a kernel does. */
static bool is_builtin(const char *word, size_t length)
{
    static const char *const words[] = {
        "int",   "float", "double", "bool",     "char", "unsigned", "long",     "signed", "void",
        "short", "const", "true",   "volatile", "auto", "false",    "__int128", NULL};
    return is_one_of(word, length, words);
}

/* Types of numbers, and what holds numbers: they are exchanged for others more often than what is
 * done with them. */
static bool is_holder(const char *word, size_t length)
{
    static const char *const words[] = {
        "Half", "BFloat16", "complex", "Float8_e4m3fn", "Float8_e5m2", "Float8_e4m3fnuz",
        "Float8_e5m2fnuz", "__half", "half", "__half2", "__nv_bfloat16", "nv_bfloat16",
        "__hip_bfloat16", "hip_bfloat16", "_Float16", "__nv_fp8_e4m3", "__nv_fp8_e5m2",
        "bfloat16_t", "half_t", "tfloat32_t", "float_e4m3_t", "float_e5m2_t", "int8_t", "int16_t",
        "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "size_t",
        /* what holds them, and how it is laid out */
        "Array", "array", "tuple", "pair", "Tuple", "Sequence", "sequence", "C", "constant",
        "integral_constant", "number", "Layout", "Shape", "Stride", "GemmShape", "MatrixShape",
        "OffsetCalculator", "TrivialOffsetCalculator", "LoadWithoutCast", "StoreWithoutCast",
        "LoadWithCast", "StoreWithCast", "TensorListMetadata", "TensorListScalarListMetadata",
        "FusedOptimizerTensorListMetadata", "TensorInfo", "OpaqueType", NULL};
    return is_one_of(word, length, words);
}

/* Does an argument say nothing of what is done? Only its last words are looked at, once each. */
static bool is_plain(const char *text, size_t length)
{
    while (length) {
        size_t word = 0;
        while (word < length && word <= PLAIN_MAX && is_word(text[length - 1 - word]))
            word++;
        const char *last = text + length - word;
        if (is_holder(last, word))
            return true;
        bool is_mark = !word && strchr(" &*.", text[length - 1]);
        if (!is_mark && !is_builtin(last, word))
            return is_digit(*text) || *text == '-';
        length -= is_mark ? 1 : word;
    }
    return true;
}

/* The argument that was written last ends: with a comma if it is kept. */
static void end_argument(struct writer *w, struct brackets *b, unsigned depth)
{
    size_t begin = b->part[depth];
    while (w->length > begin && w->text[w->length - 1] == ' ')
        w->length--;
    if (is_plain(w->text + begin, w->length - begin))
        w->length = begin;
    else
        put(w, ",", 1);
    b->part[depth] = w->length;
}

static void end_list(struct writer *w, struct brackets *b, unsigned depth)
{
    end_argument(w, b, depth);
    if (w->text[w->length - 1] == ',')
        w->text[w->length - 1] = '>';
    else
        w->length = b->mark[depth];
}

/* What is in round brackets says again what the arguments have said; but &(f(int)) is a function.
 */
static bool is_function(const struct writer *w, size_t bracket)
{
    return bracket > 0 && w->text[bracket - 1] == '&';
}

/* "Kernel2<cutlass_80_tensorop_...>": all of these wrappers are one function, and say nothing. */
static bool wrapped(const char *text, size_t length, size_t *begin, size_t *end)
{
    static const char mark[] = "<cutlass_";
    const char *found = memmem(text, length, mark, sizeof mark - 1);
    if (!found)
        return false;
    *begin = (size_t)(found - text) + 1;
    *end = *begin + word_length(found + 1, length - *begin);
    return *end < length && text[*end] != ':';
}

static size_t functor_form(char *text, size_t length)
{
    struct brackets b = {0};
    struct writer w = {text, 0};
    size_t begin, end;
    if (wrapped(text, length, &begin, &end)) {
        memmove(text, text + begin, end - begin);
        return end - begin;
    }
    for (size_t at = 0; at < length;) {
        bool is_over = b.over;
        struct token t = take(&b, text + at, length - at);
        const char *from = text + at;
        at += t.length;
        if (is_over || b.over)
            continue;
        if (t.closed == '>') {
            end_list(&w, &b, b.depth);
        } else if (t.closed == ')' && !is_function(&w, b.mark[b.depth])) {
            w.length = b.mark[b.depth];
        } else if (*from == ',' && is_within(&b, '<')) {
            end_argument(&w, &b, b.depth - 1);
            at += span_of(text + at, length - at, " ");
        } else {
            if (t.opened)
                b.mark[b.depth - 1] = w.length;
            put(&w, from, t.length);
            if (t.opened)
                b.part[b.depth - 1] = w.length;
        }
    }
    return w.length;
}

static size_t template_form(char *text, size_t length)
{
    struct brackets b = {0};
    struct writer w = {text, 0};
    for (size_t at = 0; at < length;) {
        if (starts(text + at, length - at, UNNAMED_FORM "::")) {
            at += strlen(UNNAMED_FORM "::");
            continue;
        }
        struct token t = take(&b, text + at, length - at);
        if (t.opened && !b.over)
            b.mark[b.depth - 1] = w.length;
        if (t.closed == '>')
            w.length = b.mark[b.depth];
        else
            put(&w, text + at, t.length);
        at += t.length;
    }
    return w.length;
}

/* ---- the forms ------------------------------------------------------------------------------- */

static const struct {
    const char *text;
    size_t (*make)(char *text, size_t length);
    bool is_unsure;
    bool is_numbered;
} forms[KERNEL_FORMS] = {
    [FORM_EXACT] = {"exact"},
    [FORM_DEMANGLED] = {"demangled"},
    [FORM_FUNCTION] = {"function", function_form},
    [FORM_SOURCE] = {"source", source_form, .is_numbered = true},
    [FORM_FUNCTORS] = {"functors", functor_form},
    [FORM_TEMPLATE] = {"template", template_form, .is_unsure = true},
    [FORM_TILES] = {"tiles", form_tiles},
    [FORM_OPERATION] = {"operation", form_operation, .is_unsure = true},
    [FORM_GENERATED] = {"generated", form_generated, .is_numbered = true},
};

size_t kernel_form_make(enum kernel_form form, char *text, size_t length)
{
    return forms[form].make(text, length);
}

const char *kernel_form_text(enum kernel_form form)
{
    return forms[form].text;
}

bool kernel_form_is_sure(enum kernel_form form)
{
    return !forms[form].is_unsure;
}

bool kernel_form_is_numbered(enum kernel_form form)
{
    return forms[form].is_numbered;
}
