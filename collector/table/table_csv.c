/* SPDX-License-Identifier: Apache-2.0 */
/* Tables as csv: one table for all of them, told apart by its first column. */
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "table/table.h"

/* A field in quotes, as RFC 4180 has it; a name is text on one line. */
static void print_text(const char *text, FILE *out)
{
    char *clean = json_line(text);
    fputc('"', out);
    for (const char *p = clean ? clean : "?"; *p;) {
        size_t plain = strcspn(p, "\"");
        fwrite(p, 1, plain, out);
        p += plain;
        if (*p == '"' && p++)
            fputs("\"\"", out);
    }
    fputc('"', out);
    free(clean);
}

static void print_row(enum csv_kind kind, const char *name, const char *domain,
                      const uint64_t fields[FIELDS], FILE *out)
{
    bool is_word = !domain[strspn(domain, "abcdefghijklmnopqrstuvwxyz")]; /* of ours */
    fprintf(out, "%s,", csv_kinds[kind].name);
    print_text(name, out);
    fputc(',', out);
    if (is_word)
        fputs(domain, out);
    else
        print_text(domain, out);
    for (unsigned i = 0; i < FIELDS; i++)
        fprintf(out, ",%llu", (unsigned long long)fields[i]);
    fputc('\n', out);
}

void csv_print_heading(FILE *out)
{
    fprintf(out, "kind,function,domain,calls,total_ns,mean_ns,median_ns,p95_ns,max_ns,bytes,errors,"
                 "count\n");
}

/* A row that is no function: zeros in the columns of numbers, so that they stay whole numbers. */
void csv_print_count(enum csv_kind kind, const char *name, uint64_t count, FILE *out)
{
    print_row(kind, name, "", (uint64_t[FIELDS]){[FIELD_COUNT] = count}, out);
}

static void print_form(const struct csv_form *form, const struct cell *cells, FILE *out)
{
    const char *domain = form->domain;
    uint64_t fields[FIELDS];
    if (form->when && !cells[form->when].number && !cells[form->when].text)
        return;
    for (unsigned i = 0; i < FIELDS; i++)
        fields[i] = form->fields[i] ? cells[form->fields[i]].number : 0;
    if (!domain)
        domain = form->domain_column ? cells[form->domain_column].text : "";
    print_row(form->kind, cells[0].text, domain, fields, out);
}

int table_print_csv(struct table *t, const struct table_view *view, FILE *out)
{
    int error = table_begin(t, view, FORMAT_CSV);
    for (uint32_t i = 0; error == 0 && i <= t->shown && !ferror(out); i++) {
        struct cell cells[TABLE_COLUMNS_MAX];
        bool is_row = table_row(t, i, FORMAT_CSV, cells);
        for (unsigned k = 0; is_row && k < t->info->csv_count; k++)
            print_form(&t->info->csv[k], cells, out);
        cells_release(cells);
    }
    if (error == 0 && t->shown < t->rows && t->info->csv_count) {
        char name[96];
        snprintf(name, sizeof name, "%s_left_out", t->info->key);
        csv_print_count(CSV_NOTE, name, t->rows - t->shown, out);
    }
    table_end(t);
    return error;
}
