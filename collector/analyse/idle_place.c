/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/idle_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/thread_time.h"
#include "base/array.h"
#include "base/json_text.h"
#include "base/memory.h"
#include "base/text.h"
#include "read/process.h"

const char *const idle_cause_words[IDLE_CAUSES] = {
#define CAUSE(NAME, word, key) word,
#include "analyse/idle_causes.def"
};

const char idle_on_device[] = "on the device";
const char idle_behind_all[] = "after the last work";
static const char other_places[] = "other places";

void idle_rows_release(struct idle_rows *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        free(r->list[i].text);
        free(r->list[i].where);
    }
    free(r->list);
    number_set_release(&r->numbers);
    *r = (struct idle_rows){0};
}

static const struct number_kind kind = NUMBER_KEY(struct idle_row, did);

/* The row, created if new. */
static struct idle_row *idle_rows_find(struct idle_rows *r, const struct idle_row *what)
{
    struct idle_row row = {.place = what->place,
                           .process = what->process,
                           .device = what->device,
                           .thread = what->thread,
                           .cause = what->cause,
                           .did = what->did};
    uint32_t most = what->did ? IDLE_ROWS_MAX / 2 : IDLE_ROWS_MAX;
    uint32_t number = NUMBER_ADD(&r->numbers, &kind, r->list, r->count, most, &row);
    if (number == 0) {
        row.place = idle_text(other_places);
        row.thread = IDLE_NONE;
        number = NUMBER_ADD(&r->numbers, &kind, r->list, r->count, UINT32_MAX, &row);
    }
    return &r->list[number - 1];
}

void idle_rows_add(struct idle_rows *r, const struct idle_row *what, uint64_t at_ns, uint64_t ns)
{
    /* Usually it is the previous row: a loop has few places. */
    if (!r->list || memcmp(&r->list[r->last], what, kind.key_bytes) != 0)
        r->last = (uint32_t)(idle_rows_find(r, what) - r->list);
    struct idle_row *row = &r->list[r->last];
    if (row->its.gap != r->gap || !row->count) {
        row->its.gap = r->gap;
        row->its.gap_ns = 0;
        row->its.gap_at_ns = at_ns;
        row->count++;
    }
    row->ns += ns;
    row->its.gap_ns += ns;
    if (row->count == 1) {
        row->its.first_gap = row->its.gap;
        row->its.first_ns = row->its.gap_ns;
    }
    if (row->its.gap_ns > row->longest_ns) {
        row->longest_ns = row->its.gap_ns;
        row->longest_at_ns = row->its.gap_at_ns;
    }
    if (!row->did &&
        (row->cause == IDLE_HOST || row->cause == IDLE_PREEMPTED || row->cause == IDLE_NOTHING))
        r->host_ns += ns;
    if (r->rest && row->its.gap_ns > r->rest->ns && !row->did)
        *r->rest = (struct idle_rest){row->its.gap_ns, r->last};
}

struct idle_row *idle_rows_add_sum(struct idle_rows *r, const struct idle_row *sum)
{
    struct idle_row *row = idle_rows_find(r, sum);
    row->ns += sum->ns;
    row->count += sum->count;
    if (sum->longest_ns > row->longest_ns) {
        row->longest_ns = sum->longest_ns;
        row->longest_at_ns = sum->longest_at_ns;
    }
    return row;
}

void idle_rows_join(struct idle_rows *r, const struct idle_row *later)
{
    struct idle_row *row = idle_rows_add_sum(r, later);
    bool goes_on = row->its.gap && row->its.gap == later->its.first_gap;
    uint64_t begun_ns = goes_on ? row->its.gap_ns : 0;
    row->count -= goes_on;
    if (begun_ns + later->its.first_ns > row->longest_ns) {
        row->longest_ns = begun_ns + later->its.first_ns;
        row->longest_at_ns = row->its.gap_at_ns;
    }
    if (!goes_on || later->count > 1) {
        row->its.gap = later->its.gap;
        row->its.gap_at_ns = later->its.gap_at_ns;
        begun_ns = 0;
    }
    row->its.gap_ns = begun_ns + later->its.gap_ns;
}

/* ---- texts of places ------------------------------------------------------------------------ */

void idle_place_want(struct place_lines *lines, uint32_t process, const struct idle_place *place)
{
    place_lines_add(lines, process, place->stack, false);
    place_lines_add(lines, process, place->from_stack, false);
}

/* Makes `text` safe to print, and frees it. */
static char *cleaned(char *text)
{
    char *line = json_line(text);
    free(text);
    return line;
}

/* NULL: none. */
static const char *call_name(const struct walk *w, const struct idle_place *place)
{
    const struct function_table *functions = &w->rec->reader.functions;
    return place->function < functions->count ? functions->functions[place->function]->name : NULL;
}

/* The name of a place that is no line; may be made in `made`. */
static const char *idle_place_name_of(const struct walk *w, const struct idle_row *row,
                                      char made[RANK_TITLE_BYTES])
{
    const struct idle_place *place = &row->place;
    const void *word = (const void *)(uintptr_t)place->word;
    if (place->kind == IDLE_WORD_OURS)
        return word;
    if (place->kind == IDLE_WORD_NAME)
        return ((const struct kernel_name *)word)->shown;
    if (place->kind != IDLE_WORD_DEVICE)
        return call_name(w, place) ?: "not known";
    if ((uint32_t)place->word != row->process) /* it waited for another process */
        return process_who(w->rec->processes[(uint32_t)place->word], made);
    snprintf(made, RANK_TITLE_BYTES, "GPU %llu", (unsigned long long)place->word >> 32);
    return made;
}

/* Text for one end of a time between two calls: the call with its line, or else its operator or
 * range, quoted if it has " and ". Sets *is_known if there is more than the function. */
static char *end_text(const struct walk *w, struct place_lines *lines, const struct idle_row *row,
                      bool has_caller, bool *is_known)
{
    char made[RANK_TITLE_BYTES];
    const char *line = place_line(lines, row->process, row->place.stack);
    const char *function = line ? call_name(w, &row->place) : NULL;
    const char *caller = line && !has_caller ? strstr(line, PLACE_CALLED) : NULL;
    const char *shown = line ? line : idle_place_name_of(w, row, made);
    const char *quote = !line && strstr(shown, " and ") ? "'" : "";
    *is_known |= line || row->place.kind == IDLE_WORD_NAME;
    return cleaned(text_printf("%s%s%s%.*s%s", function ? function : "", function ? " in " : "",
                               quote, (int)(caller ? caller - line : (ptrdiff_t)strlen(shown)),
                               shown, quote));
}

/* "between cudaFree in load (train.py:3) and cudaLaunchKernel in step (train.py:7)"; NULL if both
 * ends read the same. */
static char *between_text(const struct walk *w, struct place_lines *lines,
                          const struct idle_row *row, bool *is_known)
{
    const struct idle_place *p = &row->place;
    const struct idle_row before = {.process = row->process,
                                    .place = {.word = p->from_word,
                                              .stack = p->from_stack,
                                              .function = p->from_function - 1,
                                              .kind = (uint32_t)p->from_kind}};
    char *from = end_text(w, lines, &before, false, is_known);
    char *to = end_text(w, lines, row, true, is_known), *text = NULL;
    size_t length = strlen(from);
    if (strncmp(from, to, length) != 0 ||
        (to[length] && strncmp(to + length, PLACE_CALLED, 4) != 0))
        text = text_printf("between %s and %s", from, to);
    free(from);
    free(to);
    return text;
}

/* "held by thread 13 (loader)", as new text. */
static char *holder_text(const struct walk *w, const struct idle_row *row)
{
    uint64_t tid = row->place.word;
    const struct thread *t =
        tid ? thread_of_tid(&w->rec->processes[row->process]->threads, tid) : NULL;
    bool has_name = t && t->name[0];
    return tid ? text_printf("held by thread %llu%s%s%s", (unsigned long long)tid,
                             has_name ? " (" : "", has_name ? t->name : "", has_name ? ")" : "")
               : memory_text("held by a thread that is not known");
}

/* The module of a file: "torch" for "lib/torch/__init__.py". */
static char *module_text(const char *file)
{
    static const char package[] = "/__init__.py";
    size_t length = strlen(file), ending = sizeof package - 1;
    bool is_package = length > ending && strcmp(file + length - ending, package) == 0;
    length -= is_package ? ending : length > 3 && strcmp(file + length - 3, ".py") == 0 ? 3 : 0;
    const char *slash = memrchr(file, '/', length), *name = slash ? slash + 1 : file;
    return text_printf("%.*s", (int)(file + length - name), name);
}

/* The quota that stopped its threads, from "83 100 1500": exhausted periods, all periods,
 * thousandths of a processor. */
static char *quota_text(const struct process *p)
{
    const char *said = process_meta(p, "cpu_throttled");
    unsigned long long used, periods, quota;
    return said && sscanf(said, "%llu %llu %llu", &used, &periods, &quota) == 3 && used &&
                   used <= periods
               ? text_printf("a quota of %.2f processors, used up in %.0f%% of its periods",
                             (double)quota / 1e3, 100 * (double)used / (double)periods)
               : memory_text("by the quota of its control group");
}

/* What a thread did there, without the kind. */
static char *did_text(const struct walk *w, struct place_lines *lines, const struct idle_row *row)
{
    static const char *const unknown[DID_KINDS] = {[DID_RUNNING] = "in no sample",
                                                   [DID_WAITED] = "not known for what",
                                                   [DID_PREEMPTED] = "others had the processors",
                                                   [DID_UNKNOWN] = "nothing was recorded of it"};
    const struct idle_place *place = &row->place;
    const char *line = place_line(lines, row->process, place->stack);
    const char *word = idle_place_name_of(w, row, (char[RANK_TITLE_BYTES]){0});
    if (place->kind == IDLE_WORD_NONE && row->did != DID_THROTTLED) {
        bool has_sample = row->did == DID_RUNNING && place->stack;
        return json_line(line         ? line
                         : has_sample ? "in no line of the program's own"
                                      : unknown[row->did] ?: "not known where");
    }
    char *what = row->did == DID_THROTTLED         ? quota_text(w->rec->processes[row->process])
                 : place->kind == IDLE_WORD_HOLDER ? holder_text(w, row)
                 : row->did == DID_IMPORT          ? module_text(word)
                                                   : memory_text(word);
    char *text = line ? text_printf("%s in %s", what, line) : what;
    if (text != what)
        free(what);
    return cleaned(text);
}

/* New text. Sets *is_known if the place is a line, operator or range. */
static char *idle_place_own_text(const struct walk *w, struct place_lines *lines,
                                 const struct idle_row *row, bool *is_known)
{
    const struct idle_place *place = &row->place;
    char made[RANK_TITLE_BYTES], *text = NULL;
    const char *line = place_line(lines, row->process, place->stack);
    bool is_around = !line && !row->did && place->kind == IDLE_WORD_NAME;
    /* Time that lies in the operator or range around the call is that one's. */
    if (place->from_function && (place->side == IDLE_BEFORE || !is_around))
        text = between_text(w, lines, row, is_known);
    if (text)
        return text;
    line = place_line(lines, row->process, place->stack); /* anew: between_text made others */
    *is_known = line || is_around;
    bool is_before = place->side == IDLE_BEFORE || (place->side == IDLE_TOWARDS && !is_around);
    const char *side = is_before                   ? "before "
                       : place->side != IDLE_AFTER ? ""
                       : is_around                 ? "after a wait in "
                                                   : "after ";
    return cleaned(text_printf("%s%s", side, line ? line : idle_place_name_of(w, row, made)));
}

void idle_row_name(const struct walk *w, struct place_lines *lines, struct idle_row *row)
{
    bool is_known = false;
    char *place = idle_place_own_text(w, lines, row, &is_known);
    row->text = row->did ? did_text(w, lines, row) : memory_text(place);
    if (is_known)
        row->where = place; /* a line, without what was done there */
    else
        free(place);
}

char *idle_did_text(const struct idle_row *row)
{
    bool is_plain = !row->did || (row->did == DID_RUNNING && row->where);
    return is_plain ? memory_text(row->text)
                    : text_printf("%s: %s", did_words[row->did], row->text);
}

const char *idle_at(const char *place)
{
    static const char *const words[] = {"before ", "after ", "between ", idle_on_device};
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strncmp(place, words[i], strlen(words[i])) == 0)
            return "";
    return "at ";
}

/* ---- numbered places ------------------------------------------------------------------------- */

void work_places_release(struct work_places *p)
{
    for (uint32_t i = 0; i < p->count; i++)
        free(p->list[i].text);
    free(p->list);
    number_set_release(&p->numbers);
}

struct idle_place work_place_of(struct walk *w, const struct correlated_call *call)
{
    const struct span_node *op = survey_op(&w->survey, call);
    const struct span_node *range = op ? NULL : survey_innermost(&w->survey, call, SPAN_RANGE);
    const struct kernel_name *text = op ? op->text : range ? range->text : NULL;
    return (struct idle_place){.word = (uintptr_t)text,
                               .stack = call->stack,
                               .function = IDLE_NONE,
                               .kind = text ? IDLE_WORD_NAME : IDLE_WORD_NONE};
}

static const struct number_kind place_kind = NUMBER_KEY(struct work_place, cause);

uint32_t work_places_number(struct work_places *p, const struct work_place *place)
{
    return NUMBER_ADD(&p->numbers, &place_kind, p->list, p->count, WORK_PLACES_MAX, place);
}

static bool same_place(const struct correlated_call *a, const struct correlated_call *b)
{
    return a->process == b->process && a->stack == b->stack && a->span == b->span;
}

uint32_t work_places_find(struct work_places *p, const struct slice *s)
{
    const struct correlated_call *call = &s->call;
    if (p->last_number && same_place(call, &p->last))
        return p->last_number;
    struct work_place place = {.place = work_place_of(p->walk, call), .process = call->process};
    bool is_known = place.place.stack || place.place.kind;
    p->last = *call;
    return p->last_number = is_known ? work_places_number(p, &place) : 0;
}

void work_places_add_lines(const struct work_places *p, struct place_lines *lines)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (p->has_all_texts || p->list[i].is_wanted)
            idle_place_want(lines, p->list[i].process, &p->list[i].place);
}

void work_places_name(struct work_places *p, struct place_lines *lines)
{
    for (uint32_t i = 0; i < p->count; i++) {
        struct work_place *place = &p->list[i];
        struct idle_row row = {.place = place->place, .process = place->process};
        if (place->text || (!p->has_all_texts && !place->is_wanted))
            continue;
        idle_row_name(p->walk, lines, &row);
        place->text = p->has_all_texts ? row.text : row.where;
        free(p->has_all_texts ? row.where : row.text);
    }
}
