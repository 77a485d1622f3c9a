/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/source_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/report_make.h"
#include "base/array.h"
#include "base/message.h"
#include "error.h"
#include "source/source_tree.h"
#include "symbol/shown_frame.h"

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
    struct key_map files;   /* recorded path -> index of the file + 1, or NO_FILE */
    struct key_map of_tree; /* tree index -> likewise */
    struct key_map lines;   /* (file, line) -> index in `lines` + 1 */
    bool is_ambiguous;      /* a path matched several files */
};

#define NO_FILE UINT32_MAX

static bool has_line(const struct shown_frame *f)
{
    return f->file && f->line && f->line <= INT32_MAX && own_frame(f);
}

/* Lists the tree's files that recorded paths may match. */
static int list_files(struct source_report *r)
{
    const struct shown_frames *frames = &r->stacks->costs.tree.frames;
    const char **names = calloc(frames->count + 1u, sizeof *names);
    uint32_t count = 0;
    if (!names)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 1; i <= frames->count; i++)
        if (has_line(shown_frame_of(frames, i)))
            names[count++] = path_base(shown_frame_of(frames, i)->file->raw);
    if (count)
        qsort(names, count, sizeof *names, compare_texts);
    int error = source_tree_list(&r->tree, names, count);
    if (r->tree.is_cut)
        message(
            "report: --source: too many files below %s, so some were not read; name a folder in it",
            r->tree.folder);
    free(names);
    return error;
}

/* The file of a recorded path: its index + 1, or NO_FILE. 0 if out of memory. */
static uint32_t file_of(struct source_report *r, struct placing *p, const struct kernel_name *name)
{
    uint32_t index = 0;
    uint64_t known = key_map_get(&p->files, (struct key){(uintptr_t)name, 0, 0});
    if (known)
        return (uint32_t)known;
    enum source_match match = source_tree_match(&r->tree, name->raw, &index);
    if (match == SOURCE_SEVERAL && !p->is_ambiguous)
        message("report: --source: %s is not shown, since both %s and another file below %s match "
                "it; name a folder in it",
                name->raw, source_tree_path(&r->tree, index), r->tree.folder);
    p->is_ambiguous |= match == SOURCE_SEVERAL;
    uint32_t place = NO_FILE;
    if (match == SOURCE_ONE &&
        KEY_MAP_ITEM(&p->of_tree, ((struct key){index, 0, 0}), r->files, r->file_count, NO_FILE,
                     (&(struct source_file){.recorded = name, .index = index}), &place) < 0)
        return 0;
    return key_map_set(&p->files, (struct key){(uintptr_t)name, 0, 0}, place) < 0 ? 0 : place;
}

/* Sets *place to the index of the frame's line + 1, or 0 if it is not below the folder. */
static int place_in_file(struct source_report *r, struct placing *p, const struct shown_frame *f,
                         uint32_t *place)
{
    uint32_t file = file_of(r, p, f->file);
    struct source_line_cost line = {
        .file = file - 1, .line = (uint32_t)f->line, .function = f->name};
    if (!file || file == NO_FILE)
        return file ? 0 : GPUPROF_NO_MEMORY;
    return KEY_MAP_ITEM(&p->lines, ((struct key){file, f->line, 0}), r->lines, r->line_count,
                        UINT32_MAX, &line, place);
}

static int place_frames(struct source_report *r, struct placing *p)
{
    const struct shown_frames *frames = &r->stacks->costs.tree.frames;
    int error = (p->line_of = calloc(frames->count + 1u, sizeof *p->line_of)) ? list_files(r)
                                                                              : GPUPROF_NO_MEMORY;
    for (uint32_t i = 1; error == 0 && i <= frames->count; i++)
        if (has_line(shown_frame_of(frames, i)))
            error = place_in_file(r, p, shown_frame_of(frames, i), &p->line_of[i]);
    return error;
}

/* Counts the cost of a call's node for the lines that led to it. */
static void count_node(struct source_report *r, const struct placing *p, uint32_t node)
{
    const struct call_tree *tree = &r->stacks->costs.tree;
    struct stack_cost cost = stack_cost_of(&r->stacks->costs, node);
    bool owned = false;
    for (uint32_t at = node; at; at = call_tree_node(tree, at)->parent) {
        uint32_t place = p->line_of[call_tree_node(tree, at)->frame];
        if (!place)
            continue;
        struct source_line_cost *line = &r->lines[place - 1];
        if (!owned) {
            stack_cost_add(&line->own, &cost);
            stack_cost_add(&r->files[line->file].own, &cost);
        }
        if (line->stamp != node)
            stack_cost_add(&line->all, &cost);
        line->stamp = node;
        owned = true;
    }
    if (!owned)
        stack_cost_add(&r->elsewhere, &cost);
}

/* ---- order, and lines around ----------------------------------------------------------------- */

static int compare_files(const void *left, const void *right)
{
    const struct source_file *a = left, *b = right;
    int order = ORDER(b->own.gpu_ns, a->own.gpu_ns);
    order = order ? order : ORDER(b->own.host_ns + b->own.cpu_ns, a->own.host_ns + a->own.cpu_ns);
    return order ? order : ORDER(a->index, b->index);
}

static int compare_lines(const void *left, const void *right)
{
    const struct source_line_cost *a = left, *b = right;
    int order = ORDER(a->file, b->file);
    return order ? order : ORDER(a->line, b->line);
}

/* Sorts files by cost, and lines by file and number. 0 or GPUPROF_NO_MEMORY. */
static int sort_all(struct source_report *r)
{
    uint32_t *place_of = calloc(r->tree.count + 1u, sizeof *place_of);
    if (!place_of)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < r->line_count; i++)
        r->lines[i].file = r->files[r->lines[i].file].index;
    if (r->file_count)
        qsort(r->files, r->file_count, sizeof *r->files, compare_files);
    for (uint32_t i = 0; i < r->file_count; i++)
        place_of[r->files[i].index] = i;
    for (uint32_t i = 0; i < r->line_count; i++)
        r->lines[i].file = place_of[r->lines[i].file];
    free(place_of);
    if (r->line_count)
        qsort(r->lines, r->line_count, sizeof *r->lines, compare_lines);
    for (uint32_t i = r->line_count; i-- > 0;) {
        r->files[r->lines[i].file].first = i;
        r->files[r->lines[i].file].count++;
    }
    return 0;
}

static int source_report_add_row(struct source_report *r, enum source_row_kind kind, uint32_t file,
                                 uint32_t line)
{
    const struct source_line_cost *next = &r->lines[r->tied];
    struct source_row row = {.kind = kind, .file = file, .line = line};
    if (r->tied < r->line_count && line && next->file == file && next->line == line)
        row.cost = ++r->tied;
    return ARRAY_PUSH(r->rows, r->row_count, &row);
}

/* Adds the row of a line, after a gap if it does not follow line *last. */
static int add_line(struct source_report *r, uint32_t file, uint32_t line, uint32_t *last)
{
    int error = line == *last + 1 ? 0 : source_report_add_row(r, SOURCE_GAP, file, 0);
    *last = line;
    return error == 0 ? source_report_add_row(r, SOURCE_LINE, file, line) : error;
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
static int add_rows(struct source_report *r, uint32_t number, struct source_functions *f)
{
    const struct source_file *file = &r->files[number];
    uint32_t lines = file->text.line_count, last = 0, at = file->first;
    uint8_t *shown = calloc(lines + 1u, sizeof *shown);
    int error = shown ? source_report_add_row(r, SOURCE_HEAD, number, 0) : GPUPROF_NO_MEMORY;
    for (uint32_t i = at; shown && i < file->first + file->count && r->lines[i].line <= lines; i++)
        mark_around(f, r->lines[at = i].line, lines, shown);
    for (uint32_t n = 1; error == 0 && n <= lines; n++)
        if (shown[n])
            error = add_line(r, number, n, &last);
    for (; error == 0 && at < file->first + file->count; at++)
        if (r->lines[at].line > lines)
            error = add_line(r, number, r->lines[at].line, &last);
    free(shown);
    return error == 0 && last < lines ? source_report_add_row(r, SOURCE_GAP, number, 0) : error;
}

static int show_file(struct source_report *r, uint32_t number, uint64_t begin_ns, size_t *room)
{
    struct source_file *file = &r->files[number];
    struct source_functions functions = {0};
    int error = *room ? source_text_read(&file->text, &r->tree, file->index) : GPUPROF_LIMIT;
    if (error == GPUPROF_NO_MEMORY)
        return error;
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
    error = source_functions_find(&functions, &file->text, is_python);
    if (error == 0)
        error = add_rows(r, number, &functions);
    source_functions_release(&functions);
    return error;
}

static bool source_report_is_wanted(const struct report *r)
{
    return r->request.source;
}

/* Runs after the stacks are finished; prints doubtful matches on stderr. */
static int source_report_analysis_end(struct report *report)
{
    struct source_report *r = report->source;
    const struct stack_report *stacks = report->stacks;
    struct placing p = {0};
    size_t room = SOURCE_TEXT_MAX;
    *r = (struct source_report){.stacks = stacks, .is_list = report->request.is_sorted};
    int error = source_tree_open(&r->tree, report->request.source);
    if (error == 0)
        error = place_frames(r, &p);
    for (uint32_t i = 0; error == 0 && i < stacks->stack_count; i++)
        count_node(r, &p, stacks->stacks[i]);
    if (error == 0)
        error = sort_all(r);
    for (uint32_t i = 0; error == 0 && i < r->file_count; i++)
        error = show_file(r, i, report->walk.survey.origin_ns, &room);
    free(p.line_of);
    key_map_release(&p.files);
    key_map_release(&p.of_tree);
    key_map_release(&p.lines);
    return error;
}

const struct analysis source_analysis = {
    ANALYSIS_STATE(source), .is_wanted = source_report_is_wanted, .end = source_report_analysis_end,
    .release = source_report_analysis_release};
