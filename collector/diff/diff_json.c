/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/json_text.h"
#include "diff/diff_print.h"

#define DIFF_JSON_VERSION 1
#define KERNELS_SHOWN     1000

static const char *const result_words[] = {[RESULT_SAME] = "same",
                                           [RESULT_WORSE] = "worse",
                                           [RESULT_UNSURE] = "inconclusive",
                                           [RESULT_NOT_COMPARABLE] = "not comparable"};

static const char *const unit_words[] = {[RUN_UNIT_NS] = "ns",
                                         [RUN_UNIT_BYTES] = "bytes",
                                         [RUN_UNIT_MJ] = "mj",
                                         [RUN_UNIT_COUNT] = "count"};

/* JSON has neither NAN nor INFINITY. */
static void put_number(const char *before, double number, FILE *out)
{
    fputs(before, out);
    if (isfinite(number))
        fprintf(out, "%.15g", number);
    else
        fputs("null", out);
}

static void put_metric(const struct comparison *c, enum run_metric m, FILE *out)
{
    const struct metric_change *change = &c->metrics[m];
    const struct run_metric_info *info = &run_metric_infos[m];
    fprintf(out, "{\"metric\": \"%s\", \"text\": \"%s\", \"unit\": \"%s\"", info->key,
            diff_metric_text(c, m), unit_words[info->unit]);
    fprintf(out, ", \"gates\": %s, \"verdict\": \"%s\"", change->gates ? "true" : "false",
            verdict_words[change->verdict]);
    json_put(", \"why\": ", change->why, out);
    fprintf(out, ", \"exact\": %s", change->is_exact ? "true" : "false");
    put_number(", \"before\": ", change->medians[1], out);
    put_number(", \"now\": ", change->medians[0], out);
    put_number(", \"change\": ", change->shift, out);
    json_put(", \"change_is\": ", diff_change_of(c, m), out);
    put_number(", \"low\": ", change->low, out);
    put_number(", \"high\": ", change->high, out);
    put_number(", \"coverage\": ", change->coverage, out);
    put_number(", \"p\": ", change->p, out);
    put_number(", \"seen_from\": ", change->smallest, out);
    fputc('}', out);
}

static void put_run(const struct run_summary *run, const char *name, FILE *out)
{
    const char *before = ", \"metrics\": {";
    json_put("{\"name\": ", name, out);
    fprintf(out, ", \"steps\": %llu, \"warm_up\": %llu", (unsigned long long)run->steps,
            (unsigned long long)run->warm_up);
    fprintf(out, ", \"energy_steps\": %llu", (unsigned long long)run->energy_steps);
    put_number(", \"cost\": ", run->cost, out);
    for (unsigned i = 0; i < RUN_METRICS; i++) {
        fprintf(out, "%s\"%s\"", before, run_metric_infos[i].key);
        put_number(": ", run->metrics[i], out);
        before = ", ";
    }
    before = "}, \"facts\": {";
    for (unsigned i = 0; i < RUN_FACTS; i++) {
        fprintf(out, "%s\"%s\"", before, run_fact_infos[i].key);
        json_put(": ", run->facts[i], out);
        before = ", ";
    }
    fputs("}}", out);
}

/* Of a side of a row: a step's. */
static void put_kernel_side(const struct kernel_match *m, const struct match_row *row,
                            enum match_which which, FILE *out)
{
    json_put("{\"name\": ", row->side[which].name, out);
    fprintf(out, ", \"names\": %u", row->side[which].names);
    put_number(", \"count\": ", match_per_step(m, which, row->side[which].count), out);
    put_number(", \"ns\": ", match_per_step(m, which, row->side[which].ns), out);
    fputc('}', out);
}

static void put_kernels(const struct kernel_match *m, FILE *out)
{
    fputs(",\n\"kernels\": [", out);
    for (uint32_t i = 0; i < m->count && i < KERNELS_SHOWN; i++) {
        const struct match_row *row = &m->rows[i];
        fprintf(out, "%s{\"kind\": \"%s\"", i ? ",\n" : "\n", match_kind_text(row->kind));
        json_put(", \"by\": ", row->by, out);
        json_put(", \"place\": ", row->place, out);
        put_number(", \"added_ns\": ", match_added(m, row), out);
        fputs(", \"before\": ", out);
        put_kernel_side(m, row, MATCH_BASE, out);
        fputs(", \"now\": ", out);
        put_kernel_side(m, row, MATCH_OTHER, out);
        fputc('}', out);
    }
    fprintf(out, "],\n\"kernel_rows\": %u", m->count);
}

int diff_print_json(const struct comparison *c, const struct kernel_match *kernels, FILE *out)
{
    static const char *const keys[2] = {"runs", "against"};
    char headline[HEADLINE_BYTES];
    fprintf(out, "{\"gpuprof_diff\": %d, \"result\": \"%s\"", DIFF_JSON_VERSION,
            result_words[c->result]);
    json_put(", \"says\": ", diff_headline(c, headline), out);
    fprintf(out, ", \"gate\": %.15g, \"threshold\": %.15g, \"alpha\": %g,\n\"differs\": [", c->gate,
            c->threshold, COMPARISON_ALPHA);
    for (uint32_t i = 0; i < c->reasons.count; i++)
        json_put(i ? ", " : "", c->reasons.texts[i], out);
    fputs("], \"notes\": [", out);
    for (uint32_t i = 0; i < c->notes.count; i++)
        json_put(i ? ", " : "", c->notes.texts[i], out);
    fputs("],\n\"metrics\": [", out);
    for (unsigned m = 0; m < RUN_METRICS; m++) {
        fputs(m ? ",\n" : "\n", out);
        put_metric(c, (enum run_metric)m, out);
    }
    fputs("]", out);
    for (unsigned side = 0; side < 2; side++) {
        fprintf(out, ",\n\"%s\": [", keys[side]);
        for (uint32_t i = 0; i < c->sides[side]->count; i++) {
            fputs(i ? ",\n" : "\n", out);
            put_run(&c->sides[side]->runs[i], c->sides[side]->names[i], out);
        }
        fputs("]", out);
    }
    put_kernels(kernels, out);
    fputs("}\n", out);
    return 0;
}
