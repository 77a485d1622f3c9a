/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the rows of formats/api/api.def, one a line, columns separated by '|', for the tests of
 * the table. The prototype is printed as it stands; an argument word as "I KIND label;".
 */
#include <stdio.h>

#include "api/api.h"

#define PROC(name, version, flags)          name, version, flags
#define I(kind, label, expression)          "I " #kind " " #label ";"
#define O(kind, label, pointer, expression) "O " #kind " " #label ";"
#define PRINT(macro, id, symbol, domain, class, first, last, params, names, args, ...)             \
    print_row(#macro "|" #id "|" #symbol "|" #domain "|" #class "|" #first "|" #last, #params,     \
              #names, "" args, __VA_ARGS__)

static void print_row(const char *head, const char *params, const char *names, const char *args,
                      const char *returns, const char *proc_name, int proc_version, int proc_flags)
{
    printf("%s|%s|%s|%s|%s|%s|%d|%d\n", head, returns, params, names, args,
           proc_name ? proc_name : "", proc_version, proc_flags);
}

static void print_table(void)
{
    for (size_t i = 0; i < API_FUNCTION_COUNT; i++) {
        const struct api_function *f = &api_functions[i];

        printf("TABLE|%s|%s|%s|", f->symbol, api_domain_name(f->domain), api_class_name(f->class));
        for (size_t j = 0; j < f->arg_count; j++)
            printf("%s %s;", api_arg_kind_name(f->args[j].kind), f->args[j].label);
        putchar('\n');
    }
    printf("CRC|%u\n", api_table_crc());
}

int main(void)
{
#define API(id, symbol, domain, class, first, last, proc, returns, params, names, args)            \
    PRINT(API, id, symbol, domain, class, first, last, params, names, args, #returns, proc);
#define API_VARIANT(id, symbol, domain, class, first, last, proc, returns, params, names, args)    \
    PRINT(API_VARIANT, id, symbol, domain, class, first, last, params, names, args, #returns, proc);
#define DISPATCH(symbol, words, low_id, high_id, high_first)                                       \
    puts("DISPATCH|" #symbol "|" #words "|" #low_id "|" #high_id "|" #high_first);
#define HOOK(id, symbol, domain, proc, returns, params)                                            \
    PRINT(HOOK, id, symbol, domain, , , , params, , "", #returns, proc);
#include "api/api.def"
    print_table();
    return 0;
}
