/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/idle_place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/thread_time.h"
#include "base/array.h"
#include "base/json_text.h"
#include "base/text.h"
#include "error.h"
#include "read/process.h"

int idle_place_want(struct place_lines *lines, uint32_t process, const struct idle_place *place)
{
    int error = place_lines_add(lines, process, place->stack, false);
    return error < 0 ? error : place_lines_add(lines, process, place->from_stack, false);
}

/* Writes who was waited for to `text`, and returns it. */
static const char *waited_for(const struct walk *w, const struct idle_row *row,
                              char text[static RANK_TITLE_BYTES])
{
    const struct process *p = w->rec->processes[(uint32_t)row->place.word];
    if (p->index != row->process)
        return process_who(p, text);
    snprintf(text, RANK_TITLE_BYTES, "GPU %llu", (unsigned long long)row->place.word >> 32);
    return text;
}

/* The operator or range of the place; NULL if it is none, or has no name. */
static const struct kernel_name *idle_place_around(const struct idle_place *place)
{
    return place->kind == IDLE_WORD_NAME ? (const struct kernel_name *)(uintptr_t)place->word
                                         : NULL;
}

/* The name of a place that is no line; may be made in `made`. */
static const char *idle_place_name_of(const struct walk *w, const struct idle_row *row,
                                      char made[RANK_TITLE_BYTES])
{
    const struct idle_place *place = &row->place;
    const struct function_table *functions = &w->rec->reader.functions;
    const struct kernel_name *name = idle_place_around(&row->place);
    if (place->kind == IDLE_WORD_OURS)
        return (const char *)(uintptr_t)place->word;
    if (place->kind == IDLE_WORD_DEVICE)
        return waited_for(w, row, made);
    if (name)
        return name->shown;
    return place->function < functions->count ? functions->functions[place->function]->name
                                              : "not known";
}

/* Prepends the place's side to `text`, which it frees; `is_around`: `text` names what the call was
 * made in. */
static char *sided(char *text, const struct idle_place *place, bool is_around)
{
    bool is_before = place->side == IDLE_BEFORE || (place->side == IDLE_TOWARDS && !is_around);
    const char *word = is_before                   ? "before "
                       : place->side != IDLE_AFTER ? ""
                       : is_around                 ? "after a wait in "
                                                   : "after ";
    char *made = text ? text_printf("%s%s", word, text) : NULL;
    free(text);
    return made;
}

/* Text for one end of a time between two calls: the call with its line, or with its operator or
 * range, quoted if " and " in its name would confuse. Sets *is_known if there is more than the
 * function. NULL if out of memory. */
static char *end_text(const struct walk *w, struct place_lines *lines, const struct idle_row *row,
                      bool has_caller, bool *is_known)
{
    char made[RANK_TITLE_BYTES];
    const struct function_table *functions = &w->rec->reader.functions;
    const char *line, *name = idle_place_name_of(w, row, made);
    if (place_line(lines, row->process, row->place.stack, &line) < 0)
        return NULL;
    *is_known |= line || idle_place_around(&row->place);
    const char *caller = line && !has_caller ? strstr(line, PLACE_CALLED) : NULL;
    int shown = line ? (int)(caller ? caller - line : (ptrdiff_t)strlen(line)) : 0;
    bool is_call = line && row->place.function < functions->count;
    char *text = is_call ? text_printf("%s in %.*s",
                                       functions->functions[row->place.function]->name, shown, line)
                 : !line && strstr(name, " and ")
                     ? text_printf("'%s'", name)
                     : text_printf("%.*s", line ? shown : (int)strlen(name), line ? line : name);
    char *clean = text ? json_line(text) : NULL;
    free(text);
    return clean;
}

/* "between cudaFree in load (train.py:3) and cudaLaunchKernel in step (train.py:7)"; "before" one
 * of them if both read the same. */
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
    bool is_same = from && to && strncmp(from, to, strlen(from)) == 0 &&
                   (!to[strlen(from)] || strncmp(to + strlen(from), PLACE_CALLED, 4) == 0);
    const char *line;
    char made[RANK_TITLE_BYTES];
    if (is_same && place_line(lines, row->process, row->place.stack, &line) == 0)
        text = sided(json_line(line ? line : idle_place_name_of(w, row, made)), &row->place, false);
    else if (from && to)
        text = text_printf("between %s and %s", from, to);
    free(from);
    free(to);
    return text;
}

/* Text for time with a known kind and nothing else. */
static const char *nothing_known(const struct idle_row *row)
{
    switch (row->did) {
    case DID_RUNNING: return row->place.stack ? "in no line of the program's own" : "in no sample";
    case DID_WAITED: return "not known for what";
    case DID_PREEMPTED: return "others had the processors";
    case DID_THROTTLED: return "by the quota of its control group";
    case DID_UNKNOWN: return "nothing was recorded of it";
    default: return "not known where";
    }
}

/* "thread 13 (loader)", as new text. */
static char *holder_text(const struct walk *w, const struct idle_row *row)
{
    uint64_t tid = row->place.word;
    const struct thread *t =
        tid ? thread_of_tid(&w->rec->processes[row->process]->threads, tid) : NULL;
    return !tid              ? strdup("a thread that is not known")
           : t && t->name[0] ? text_printf("thread %llu (%s)", (unsigned long long)tid, t->name)
                             : text_printf("thread %llu", (unsigned long long)tid);
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
 * thousandths of a processor. NULL: not known. */
static char *quota_text(const struct process *p)
{
    const char *said = process_meta(p, "cpu_throttled");
    unsigned long long used, periods, quota;
    return said && sscanf(said, "%llu %llu %llu", &used, &periods, &quota) == 3 && used &&
                   used <= periods
               ? text_printf("a quota of %.2f processors, used up in %.0f%% of its periods",
                             (double)quota / 1e3, 100 * (double)used / (double)periods)
               : NULL;
}

/* What a thread did there, without the kind. */
static char *did_text(const struct walk *w, struct place_lines *lines, const struct idle_row *row)
{
    const struct idle_place *place = &row->place;
    const void *word = (const void *)(uintptr_t)place->word;
    const char *line;
    if (place_line(lines, row->process, place->stack, &line) < 0)
        return NULL;
    char *what = row->did == DID_THROTTLED ? quota_text(w->rec->processes[row->process]) : NULL;
    if (!what)
        what = place->kind == IDLE_WORD_HOLDER ? holder_text(w, row)
               : place->kind == IDLE_WORD_OURS ? strdup(word)
               : place->kind != IDLE_WORD_NAME ? NULL
               : row->did == DID_IMPORT ? module_text(((const struct kernel_name *)word)->shown)
                                        : strdup(((const struct kernel_name *)word)->shown);
    if (place->kind != IDLE_WORD_NONE && !what)
        return NULL;
    char *text = text_printf("%s%s%s%s", place->kind == IDLE_WORD_HOLDER ? "held by " : "",
                             what ? what : "", what && line ? " in " : "",
                             line   ? line
                             : what ? ""
                                    : nothing_known(row));
    char *clean = text ? json_line(text) : NULL;
    free(what);
    free(text);
    return clean;
}

/* New text. Sets *is_known if the place is a line, operator or range. NULL if out of memory. */
static char *idle_place_own_text(const struct walk *w, struct place_lines *lines,
                                 const struct idle_row *row, bool *is_known)
{
    char made[RANK_TITLE_BYTES];
    const char *line;
    if (place_line(lines, row->process, row->place.stack, &line) < 0)
        return NULL;
    bool is_around = !line && !row->did && idle_place_around(&row->place);
    /* Time that lies in the operator or range around the call is that one's. */
    if (row->place.from_function && (row->place.side == IDLE_BEFORE || !is_around))
        return between_text(w, lines, row, is_known);
    *is_known = line || is_around;
    return sided(json_line(line ? line : idle_place_name_of(w, row, made)), &row->place, is_around);
}

char *idle_place_text(const struct walk *w, struct place_lines *lines, const struct idle_row *row)
{
    const struct idle_reported *reported = idle_reported_of(row);
    if (reported)
        return strdup(reported->text);
    return row->did ? did_text(w, lines, row) : idle_place_own_text(w, lines, row, &(bool){false});
}

int idle_where_text(const struct walk *w, struct place_lines *lines, const struct idle_row *row,
                    char **text)
{
    const struct idle_reported *reported = idle_reported_of(row);
    bool is_known = false;
    *text = reported && reported->where ? strdup(reported->where) : NULL;
    if (reported)
        return !reported->where == !*text ? 0 : GPUPROF_NO_MEMORY;
    char *made = idle_place_own_text(w, lines, row, &is_known);
    if (is_known)
        *text = made;
    else
        free(made);
    return made ? 0 : GPUPROF_NO_MEMORY;
}

char *idle_did_text(const struct walk *w, struct place_lines *lines, const struct idle_row *row)
{
    char *place = idle_place_text(w, lines, row);
    const struct idle_reported *reported = idle_reported_of(row);
    bool has_place = reported ? reported->where != NULL : row->place.stack || row->place.kind;
    bool is_line = row->did == DID_RUNNING && has_place;
    char *text =
        place && row->did && !is_line ? text_printf("%s: %s", did_words[row->did], place) : place;
    if (text != place)
        free(place);
    return text;
}

const char *idle_at(const char *place)
{
    static const char *const words[] = {"before ", "after ", "between ", idle_on_device};
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strncmp(place, words[i], strlen(words[i])) == 0)
            return "";
    return "at ";
}

static int by_cause_and_place(const void *left, const void *right)
{
    const struct idle_total *a = left, *b = right;
    return ORDER(a->cause, b->cause) ?: strcmp(a->place, b->place);
}

static int by_ns(const void *left, const void *right)
{
    const struct idle_total *a = left, *b = right;
    return ORDER(b->ns, a->ns) ?: by_cause_and_place(left, right);
}

/* Orders rows by longest gap; among equal ones the earliest first. */
static int by_longest(const struct idle_row *rows, uint32_t a, uint32_t b)
{
    const struct idle_row *x = &rows[a], *y = &rows[b];
    return ORDER(y->longest_ns, x->longest_ns) ?:
           ORDER(x->longest_at_ns, y->longest_at_ns) ?:
           ORDER(x->device, y->device) ?:
           ORDER(a, b);
}

/* Orders totals by cause and place, then by device. */
static int by_device(const void *left, const void *right, void *context)
{
    const struct idle_total *a = left, *b = right;
    const struct idle_row *rows = context, *x = &rows[a->longest], *y = &rows[b->longest];
    int order = by_cause_and_place(left, right);
    if (order || x->device == y->device)
        return order ? order : by_longest(rows, a->longest, b->longest);
    return x->device < y->device ? -1 : 1;
}

int idle_totals(const struct walk *w, struct place_lines *lines, const struct idle_rows *rows,
                struct idle_total **made, uint32_t *count)
{
    struct idle_total *totals = calloc(rows->count + 1u, sizeof *totals);
    *made = totals;
    *count = 0;
    if (!totals)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct idle_row *row = &rows->list[i];
        if (row->did)
            continue;
        char *place = idle_place_text(w, lines, row);
        if (!place)
            return GPUPROF_NO_MEMORY;
        totals[(*count)++] = (struct idle_total){.cause = (enum idle_cause)row->cause,
                                                 .place = place,
                                                 .ns = row->ns,
                                                 .count = row->count,
                                                 .longest = i,
                                                 .devices = 1};
    }
    qsort_r(totals, *count, sizeof *totals, by_device, rows->list);
    uint32_t kept = 0, device = IDLE_NONE;
    for (uint32_t i = 0; i < *count; i++) {
        struct idle_total *last = kept ? &totals[kept - 1] : NULL;
        const struct idle_row *row = &rows->list[totals[i].longest];
        if (!last || by_cause_and_place(last, &totals[i]) != 0) {
            totals[kept++] = totals[i];
            device = row->device;
            continue;
        }
        last->devices += row->device != device;
        device = row->device;
        last->has_processes |= rows->list[last->longest].process != row->process;
        if (by_longest(rows->list, totals[i].longest, last->longest) < 0)
            last->longest = totals[i].longest;
        last->ns += totals[i].ns;
        last->count += totals[i].count;
        free(totals[i].place);
    }
    *count = kept;
    qsort(totals, kept, sizeof *totals, by_ns);
    return 0;
}

/* ---- numbered places ------------------------------------------------------------------------- */

void work_places_init(struct work_places *p, struct walk *walk)
{
    *p = (struct work_places){.walk = walk};
}

void work_places_release(struct work_places *p)
{
    for (uint32_t i = 0; i < p->count; i++)
        free(p->list[i].text);
    free(p->list);
    number_set_release(&p->numbers);
}

int work_place_of(struct walk *w, const struct correlated_call *call, struct idle_place *place)
{
    struct survey *survey = &w->survey;
    struct op_place at = {.number = call->op};
    const struct op_node *op;
    int error = 0;
    *place = (struct idle_place){.stack = call->stack, .function = IDLE_NONE};
    while ((op = survey_op(survey, call, &at, &error)) && !op_scope_works(op->scope))
        ;
    const struct range_node *range =
        !op && error == 0 && call->range ? survey_range(survey, call->range, &error) : NULL;
    const struct kernel_name *text = op ? op->text : range ? range->text : NULL;
    place->kind = text ? IDLE_WORD_NAME : IDLE_WORD_NONE;
    place->word = (uintptr_t)text;
    return error;
}

static const struct number_kind place_kind = NUMBER_KEY(struct work_place, cause);

int work_places_number(struct work_places *p, const struct work_place *place, uint32_t *number)
{
    int64_t found = NUMBER_ADD(&p->numbers, &place_kind, p->list, p->count, WORK_PLACES_MAX, place);
    *number = found < 0 ? 0 : (uint32_t)found;
    return found < 0 ? (int)found : 0;
}

static bool same_place(const struct correlated_call *a, const struct correlated_call *b)
{
    return a->process == b->process && a->stack == b->stack && a->op == b->op &&
           a->range == b->range;
}

int work_places_find(struct work_places *p, const struct slice *s, uint32_t *number)
{
    const struct correlated_call *call = &s->call;
    struct work_place place = {.process = call->process};
    if (p->last_number && same_place(call, &p->last)) {
        *number = p->last_number;
        return 0;
    }
    *number = 0;
    int error = work_place_of(p->walk, call, &place.place);
    if (error == 0 && (place.place.stack || place.place.kind))
        error = work_places_number(p, &place, number);
    p->last = *call;
    p->last_number = *number;
    return error;
}

int work_places_add_lines(const struct work_places *p, struct place_lines *lines)
{
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < p->count; i++)
        if (p->has_all_texts || p->list[i].is_wanted)
            error = idle_place_want(lines, p->list[i].process, &p->list[i].place);
    return error;
}

int work_places_name(struct work_places *p, struct place_lines *lines)
{
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < p->count; i++) {
        struct work_place *place = &p->list[i];
        const struct idle_row row = {.place = place->place, .process = place->process};
        if (p->has_all_texts)
            error = (place->text = idle_place_text(p->walk, lines, &row)) ? 0 : GPUPROF_NO_MEMORY;
        else if (place->is_wanted)
            error = idle_where_text(p->walk, lines, &row, &place->text);
    }
    return error;
}
