/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz_baseline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diff/comparison.h"
#include "diff/run_summary.h"

static void print_all(const struct run_set *s)
{
    static diff_print_fn *const printers[] = {diff_print_text, diff_print_junit, diff_print_json};
    struct comparison *c = malloc(sizeof *c);
    struct kernel_match kernels;
    FILE *out = fopen("/dev/null", "we");
    if (!c || !out)
        abort();
    comparison_make(c, s, s, 0.05, s->count % 2);
    kernel_match_make(&kernels, &s->kernels, &s->kernels);
    for (unsigned i = 0; i < sizeof printers / sizeof printers[0]; i++)
        printers[i](c, &kernels, out);
    kernel_match_release(&kernels);
    fclose(out);
    free(c);
}

static void write_again(struct run_set *s)
{
    char *text = NULL;
    size_t length = 0;
    struct run_set *again = calloc(1, sizeof *again);
    FILE *out = open_memstream(&text, &length);
    if (!again || !out)
        abort();
    baseline_write(s, out);
    fclose(out);
    if (baseline_read(again, text, length - 1) || again->count != s->count ||
        again->kernels.steps != s->kernels.steps)
        abort();
    run_set_release(again);
    free(again);
    free(text);
}

void fuzz_baseline(const char *text, size_t length)
{
    struct run_set *s = calloc(1, sizeof *s);
    if (!s)
        abort();
    if (length && !baseline_read(s, text, length)) {
        print_all(s);
        write_again(s);
    }
    run_set_release(s);
    free(s);
}
