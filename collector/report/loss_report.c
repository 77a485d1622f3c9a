/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>

#include "base/text.h"
#include "report/report.h"

#define UNREAD_FILES LOSS_COUNT /* the row after those of struct losses */

enum { NAME, WEIGHT, KEY, COUNT };

static const struct column columns[] = {
    [NAME] = {NULL, "what", .doc = "a loss, damage or note"},
    [WEIGHT] = {"kind", .doc = "loss, note or damage"},
    [KEY] = {"name", .doc = "the name of the counter"},
    [COUNT] = {"count", "count", COLUMN_COUNT, 14, .doc = "the number of them"},
};

static bool has_row(const struct table *t, uint32_t index)
{
    const struct report *r = t->source;
    return index == UNREAD_FILES ? r->rec->unread_files : loss_value(&r->losses, index);
}

static void loss_report_begin(struct table *t)
{
    t->count = UNREAD_FILES + 1;
    for (uint32_t i = 0; i < t->count; i++)
        t->is_there |= has_row(t, i);
}

static void loss_report_fill_row(const struct table *t, uint32_t index, struct cell *cells)
{
    static const char *const weights[] = {
        [LOSS_NONE] = "note", [LOSS_COUNTED] = "loss", [LOSS_DAMAGE] = "damage"};
    static const struct loss_info unread = {
        "unread_files", "files that could not be read at all", LOSS_DAMAGE, true, false, false};
    const struct report *r = t->source;
    bool is_unread = index == UNREAD_FILES;
    struct loss_info info = is_unread ? unread : loss_info(index);
    cells[WEIGHT] = cell_text(weights[info.weight]);
    cells[KEY] = cell_text(info.key);
    cells[COUNT] = cell_number(is_unread ? r->rec->unread_files : loss_value(&r->losses, index));
    cells[NAME] =
        cell_printf("%s%s%s", info.is_count ? "" : "processes: ", info.text,
                    info.weight == LOSS_NONE && !info.leaves_out ? " (nothing is missing)" : "");
}

const struct table_info losses_table = {
    .name = "losses",
    .csv_name = "losses",
    .title = "losses and notes",
    TABLE_COLUMNS(columns),
    .is_summary = true,
    .text_none = ": nothing was lost, and there are no notes",
    .begin = loss_report_begin,
    .has = has_row,
    .row = loss_report_fill_row,
};
