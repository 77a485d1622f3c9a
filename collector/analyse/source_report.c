/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/source_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/report_make.h"
#include "base/array.h"
#include "base/json_text.h"
#include "base/memory.h"
#include "base/message.h"
#include "base/text.h"
#include "error.h"
#include "source/source_tree.h"
#include "symbol/shown_frame.h"

#define TAB   8
#define OTHER "(all other calls: no line below the folder, or no stack)"

enum exit_code source_report_check(const char *folder)
{
    struct source_tree tree;
    int error = source_tree_open(&tree, folder);
    int number = errno;
    source_tree_release(&tree);
    return error == 0 ? EXIT_OK : usage_error("report: --source: %s: %s", folder, strerror(number));
}

static void source_report_analysis_release(struct report *report)
{
    struct source_report *r = report->source;
    for (uint32_t i = 0; i < r->file_count; i++)
        source_text_release(&r->files[i].text);
    free(r->files);
    free(r->lines);
    free(r->rows);
    if (r->stacks)
        source_tree_release(&r->tree);
}

/* ---- which lines ---- */

/* State while frames become lines. */
struct placing {
    uint32_t *line_of; /* owned, by frame number: index in `lines` + 1; 0: not below the folder */
    /* Recorded path -> index of the file + 1, or NO_FILE; (tree index, IN_TREE) -> likewise; (file,
     * IN_LINES, line) -> index in `lines` + 1. */
    struct key_map places;
    bool is_ambiguous; /* a path matched several files */
};

enum { IN_TREE = 1, IN_LINES };
#define NO_FILE UINT32_MAX

static bool has_line(const struct shown_frame *f)
{
    return f->file && f->line && f->line <= INT32_MAX && own_frame(f);
}

/* Lists the tree's files that recorded paths may match. */
static void list_files(struct source_report *r)
{
    const struct shown_frames *frames = &r->stacks->costs.tree.frames;
    const char **names = memory_new(frames->count + 1u, sizeof *names);
    uint32_t count = 0;
    for (uint32_t i = 1; i <= frames->count; i++)
        if (has_line(shown_frame_of(frames, i)))
            names[count++] = path_base(shown_frame_of(frames, i)->file->raw);
    ARRAY_SORT(names, count, compare_texts);
    source_tree_list(&r->tree, names, count);
    if (r->tree.is_cut)
        message(
            "report: --source: too many files below %s, so some were not read; name a folder in it",
            r->tree.folder);
    free(names);
}

/* The file of a recorded path: its index + 1, or NO_FILE. */
static uint32_t file_of(struct source_report *r, struct placing *p, const struct kernel_name *name)
{
    uint32_t index = 0;
    uint64_t known = key_map_get(&p->places, (struct key){(uintptr_t)name, 0, 0});
    if (known)
        return (uint32_t)known;
    enum source_match match = source_tree_match(&r->tree, name->raw, &index);
    if (match == SOURCE_SEVERAL && !p->is_ambiguous)
        message("report: --source: %s is not shown, since both %s and another file below %s match "
                "it; name a folder in it",
                name->raw, source_tree_path(&r->tree, index), r->tree.folder);
    p->is_ambiguous |= match == SOURCE_SEVERAL;
    uint32_t place = NO_FILE;
    if (match == SOURCE_ONE)
        place = KEY_MAP_ITEM(&p->places, ((struct key){index, IN_TREE, 0}), r->files, r->file_count,
                             NO_FILE, (&(struct source_file){.recorded = name, .index = index}));
    key_map_set(&p->places, (struct key){(uintptr_t)name, 0, 0}, place);
    return place;
}

/* Returns the index of the frame's line + 1, or 0 if it is not below the folder. */
static uint32_t place_in_file(struct source_report *r, struct placing *p,
                              const struct shown_frame *f)
{
    uint32_t file = file_of(r, p, f->file), place = 0;
    struct source_line_cost line = {
        .file = file - 1, .line = (uint32_t)f->line, .function = f->name};
    if (file != NO_FILE)
        place = KEY_MAP_ITEM(&p->places, ((struct key){file, IN_LINES, f->line}), r->lines,
                             r->line_count, UINT32_MAX, &line);
    return place;
}

/* Counts the cost of a call's node for the lines that led to it. */
static void count_node(struct source_report *r, const struct placing *p, uint32_t node,
                       const struct stack_cost *cost)
{
    const struct call_tree *tree = &r->stacks->costs.tree;
    bool owned = false;
    for (uint32_t at = node; at; at = call_tree_node(tree, at)->parent) {
        uint32_t place = p->line_of[call_tree_node(tree, at)->frame];
        if (!place)
            continue;
        struct source_line_cost *line = &r->lines[place - 1];
        if (!owned) {
            stack_cost_add(&line->own, cost);
            stack_cost_add(&r->files[line->file].own, cost);
        }
        if (line->stamp != node)
            stack_cost_add(&line->all, cost);
        line->stamp = node;
        owned = true;
    }
    if (!owned)
        stack_cost_add(&r->elsewhere, cost);
}

/* ---- order, and lines around ----------------------------------------------------------------- */

static int compare_files(const void *left, const void *right)
{
    const struct source_file *a = left, *b = right;
    return ORDER(b->own.gpu_ns, a->own.gpu_ns)
               ?: ORDER(b->own.host_ns + b->own.cpu_ns, a->own.host_ns + a->own.cpu_ns)
               ?: ORDER(a->index, b->index);
}

static int compare_lines(const void *left, const void *right)
{
    const struct source_line_cost *a = left, *b = right;
    return ORDER(a->file, b->file) ?: ORDER(a->line, b->line);
}

/* Sorts lines by file and number, and files by cost. */
static void sort_all(struct source_report *r)
{
    if (!r->line_count)
        return;
    qsort(r->lines, r->line_count, sizeof *r->lines, compare_lines);
    for (uint32_t i = r->line_count; i-- > 0;) {
        r->files[r->lines[i].file].first = i;
        r->files[r->lines[i].file].count++;
    }
    qsort(r->files, r->file_count, sizeof *r->files, compare_files);
}

static void add_row(struct source_report *r, enum source_row_kind kind, uint32_t file,
                    uint32_t line, const struct source_line_cost *cost)
{
    const struct source_row row = {.kind = kind,
                                   .file = file,
                                   .line = line,
                                   .cost = cost,
                                   .own = kind == SOURCE_HEAD ? &r->files[file].own
                                          : cost              ? &cost->own
                                                              : NULL,
                                   .all = cost ? &cost->all : NULL};
    ARRAY_PUSH(r->rows, r->row_count, &row);
}

/* Adds the row of a line, after a gap if it does not follow line *last. */
static void add_line(struct source_report *r, uint32_t file, uint32_t line,
                     const struct source_line_cost *cost, uint32_t *last)
{
    if (line != *last + 1)
        add_row(r, SOURCE_GAP, file, 0, NULL);
    *last = line;
    add_row(r, SOURCE_LINE, file, line, cost);
}

/* Marks the lines that are shown around line `hit`; a function's only once. */
static void mark_around(struct source_functions *f, uint32_t hit, uint32_t lines, uint8_t *shown)
{
    struct source_span around = {hit > SOURCE_AROUND ? hit - SOURCE_AROUND : 1,
                                 hit + SOURCE_AROUND};
    struct source_span *span = f->of_line[hit] ? &f->spans[f->of_line[hit] - 1] : &around;
    shown[hit] = 1;
    for (; span->first <= span->last && span->first <= lines; span->first++)
        shown[span->first] = 1;
}

/* Adds the rows of a file with known functions. Lines that it does not have come after its text. */
static void add_rows(struct source_report *r, uint32_t number, struct source_functions *f)
{
    const struct source_file *file = &r->files[number];
    const struct source_line_cost *next = &r->lines[file->first], *end = next + file->count;
    uint32_t lines = file->text.line_count, last = 0;
    uint8_t *shown = memory_new(lines + 1u, sizeof *shown);
    add_row(r, SOURCE_HEAD, number, 0, NULL);
    for (const struct source_line_cost *l = next; l < end && l->line <= lines; l++)
        mark_around(f, l->line, lines, shown);
    for (uint32_t n = 1; n <= lines; n++)
        if (shown[n])
            add_line(r, number, n, next < end && next->line == n ? next++ : NULL, &last);
    for (; next < end; next++)
        add_line(r, number, next->line, next, &last);
    free(shown);
    if (last < lines)
        add_row(r, SOURCE_GAP, number, 0, NULL);
}

static void show_file(struct source_report *r, uint32_t number, uint64_t begin_ns, size_t *room)
{
    struct source_file *file = &r->files[number];
    struct source_functions functions = {0};
    int error = *room ? source_text_read(&file->text, &r->tree, file->index) : GPUPROF_LIMIT;
    if (error < 0 || file->text.length > *room) {
        message("report: --source: %s: %s", source_tree_path(&r->tree, file->index),
                error == GPUPROF_IO ? strerror(errno) : "too large to show");
        source_text_release(&file->text);
        file->text = (struct source_text){0};
    }
    *room -= file->text.length;
    file->is_newer = file->text.changed_ns > begin_ns;
    const char *path = source_tree_path(&r->tree, file->index);
    size_t length = strlen(path);
    bool is_python = length > 3 && strcmp(path + length - 3, ".py") == 0;
    source_functions_find(&functions, &file->text, is_python);
    add_rows(r, number, &functions);
    source_functions_release(&functions);
}

static bool source_report_is_wanted(const struct report *r)
{
    return r->request.lines.source;
}

/* Runs after the stacks are finished; prints doubtful matches on stderr. */
static void source_report_analysis_end(struct report *report)
{
    struct source_report *r = report->source;
    const struct stack_report *stacks = report->stacks;
    struct placing p = {0};
    size_t room = SOURCE_TEXT_MAX;
    *r = (struct source_report){.stacks = stacks, .is_list = report->request.lines.is_sorted};
    report->making.error = source_tree_open(&r->tree, report->request.lines.source);
    say_error("report", report->making.error);
    if (report->making.error < 0)
        return;
    const struct shown_frames *frames = &stacks->costs.tree.frames;
    p.line_of = memory_new(frames->count + 1u, sizeof *p.line_of);
    list_files(r);
    for (uint32_t i = 1; i <= frames->count; i++)
        if (has_line(shown_frame_of(frames, i)))
            p.line_of[i] = place_in_file(r, &p, shown_frame_of(frames, i));
    for (uint32_t i = 0; i < stacks->count; i++)
        count_node(r, &p, stacks->rows[i].at, stacks->rows[i].own);
    sort_all(r);
    for (uint32_t i = 0; i < r->file_count; i++)
        show_file(r, i, report->walk.survey.origin_ns, &room);
    free(p.line_of);
    key_map_release(&p.places);
}

const struct analysis source_analysis = {
    ANALYSIS_STATE(source), .is_wanted = source_report_is_wanted, .end = source_report_analysis_end,
    .release = source_report_analysis_release};

/* ---- the table ------------------------------------------------------------------------------- */

enum { NAME, PLACE_FILE, RECORDED, LINE, FUNCTION, TEXT, IS_NEWER, STACK_COST_COLUMNS };

static const struct column columns[COLUMNS] = {
    [NAME] = {NULL, "source", COLUMN_LINES, .doc = "the file, or the line"},
    [PLACE_FILE] = {"file", NULL, COLUMN_JSON, .doc = "the file, below the folder"},
    [RECORDED] = {"recorded_as", NULL, COLUMN_JSON, .doc = "the path of the file in the recording"},
    [LINE] = {"line", NULL, COLUMN_NUMBER, .ascending = true, .doc = "the line"},
    [FUNCTION] = {"function", NULL, COLUMN_JSON, .doc = "the function of the line"},
    [TEXT] = {"text", NULL, COLUMN_JSON, .doc = "the text of the line"},
    [IS_NEWER] = {"file_is_newer", NULL, COLUMN_BOOL,
                  .doc = "1: the file changed after the recording started"},
    COST_COLUMNS(struct source_row),
};

char *source_line_text(const struct source_file *file, uint32_t line)
{
    size_t length, at = 0;
    if (line > file->text.line_count)
        return memory_text("?");
    const char *from = source_line(&file->text, line, &length);
    char *wide = memory_new(TAB * length + 1, 1);
    for (size_t i = 0; i < length; i++) {
        if (from[i] == '\t')
            do
                wide[at++] = ' ';
            while (at % TAB);
        else
            wide[at++] = from[i];
    }
    char *clean = json_clean(wide, at);
    free(wide);
    return clean;
}

/* Returns "train.py (recorded as /x/train.py; newer than the recording: lines may have moved)". */
char *source_head_text(const struct source_report *r, const struct source_file *file)
{
    const char *path = source_tree_path(&r->tree, file->index);
    size_t length = strlen(path), bytes = file->recorded->raw_bytes;
    bool is_alike = bytes >= length && strcmp(file->recorded->raw + bytes - length, path) == 0;
    return line_printf("%s%s%s%s%s", path, is_alike ? "" : " (recorded as ",
                       is_alike ? "" : file->recorded->raw, is_alike ? "" : ")",
                       file->is_newer ? " (newer than the recording: lines may have moved)" : "");
}

static char *row_name(const struct source_report *r, const struct source_row *row)
{
    const struct source_file *file = &r->files[row->file];
    const char *path = source_tree_path(&r->tree, file->index);
    if (row->kind == SOURCE_HEAD)
        return source_head_text(r, file);
    if (row->kind == SOURCE_GAP)
        return memory_text("       ...");
    char *text = source_line_text(file, row->line);
    char *clean = r->is_list ? line_printf("%s:%u%s%s", path, row->line, *text ? "  " : "", text)
                             : line_printf("%7u%s%s", row->line, *text ? "  " : "", text);
    free(text);
    return clean;
}

static struct cell json_of(char *text)
{
    char *json = json_string(text, strlen(text));
    free(text);
    return cell_owned(json);
}

static void fill_source(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct source_report *r = t->source;
    const struct source_row *row = &r->rows[index];
    const struct source_file *file = &r->files[row->file];
    if (t->format != FORMAT_JSON)
        cells[NAME] = cell_owned(row_name(r, row));
    if (!row->cost)
        return;
    cells[LINE] = cell_number(row->line);
    if (t->format != FORMAT_JSON)
        return;
    cells[PLACE_FILE] = json_of(memory_text(source_tree_path(&r->tree, file->index)));
    cells[RECORDED] = cell_text(file->recorded->json);
    cells[FUNCTION] = cell_text(row->cost->function ? row->cost->function->json : NULL);
    cells[TEXT] = row->line > file->text.line_count ? cell_text(NULL)
                                                    : json_of(source_line_text(file, row->line));
    cells[IS_NEWER] = cell_number(file->is_newer);
}

static void source_begin(struct table *t)
{
    const struct source_report *r = t->source;
    t->is_there = r != NULL;
    t->without = r && r->stacks->total.samples ? 0 : SAMPLE_COLUMNS_BITS;
    t->count = r ? r->row_count : 0;
}

/* Lines without cost are shown only in text, unless a list is sorted. */
static bool has_row(const struct table *t, uint32_t index)
{
    const struct source_report *r = t->source;
    return r->rows[index].cost || (t->format == FORMAT_TEXT && !r->is_list);
}

static bool fill_other(const struct table *t, struct cell *cells)
{
    const struct source_report *r = t->source;
    if (!r)
        return false;
    struct stack_cost other = r->elsewhere;
    stack_cost_add(&other, &r->stacks->without);
    members_show(t, &(struct source_row){.own = &other}, cells);
    cells[NAME] = cell_text(OTHER);
    return other.calls || other.works || other.samples;
}

static void print_total(const struct table *t, FILE *out)
{
    const struct source_report *r = t->source;
    const struct stack_cost *all = &r->stacks->total;
    char a[UNIT_TEXT_BYTES], b[UNIT_TEXT_BYTES], c[UNIT_TEXT_BYTES];
    fprintf(out, "in all %s on the GPU, %s on the host in %s call%s\n", time_text(a, all->gpu_ns),
            time_text(b, all->host_ns), count_text(c, all->calls), all->calls == 1 ? "" : "s");
    if (all->samples)
        fprintf(out, "and %s of CPU time in %s sample%s\n", time_text(a, all->cpu_ns),
                count_text(c, all->samples), plural_end(all->samples));
}

static void print_notes(const struct table *t, FILE *out)
{
    const struct source_report *r = t->source;
    fprintf(out,
            "\na call counts for the innermost line here that led to it, and under \"all\" for "
            "each such line\n");
    if (!r->file_count)
        fprintf(out, "no line of a file below %s is in a recorded stack\n", r->tree.folder);
    if (r->stacks->total.samples)
        fprintf(out, STACK_SAMPLES_NOTE);
    stack_report_print_missing_reasons(r->stacks, true, out);
}

static void print_json_others(const struct table *t, FILE *out)
{
    const struct source_report *r = t->source;
    stack_cost_print_json("source_elsewhere", &r->elsewhere, out);
    stack_cost_print_json("without_stack", &r->stacks->without, out);
}

const struct table_info source_table = {
    .name = "source_lines",
    .key = "source_lines",
    .title = "source",
    TABLE_COLUMNS(columns),
    .text = {CPU, PYTHON, NATIVE, SYSTEM, HITS, GPU, HOST, CALLS, BYTES, CPU_ALL, GPU_ALL,
             HOST_ALL},
    .rows = {ROWS_IN(struct source_report, rows, row_count)},
    .by = BY_SOURCE,
    .begin = source_begin,
    .has = has_row,
    .row = fill_source,
    .foot = fill_other,
    .text_before = print_total,
    .text_behind = print_notes,
    .json_before = print_json_others,
};
