/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the rows of formats/api/api.def, one a line, columns separated by '|', for the tests of
 * the table. The prototype is printed as it stands; an argument word as "I KIND label;".
 */
#include <stdio.h>

#include "api/api.h"

#define UNPACK(...)                         __VA_ARGS__
#define I(kind, label, expression)          "I " #kind " " #label ";"
#define O(kind, label, pointer, expression) "O " #kind " " #label ";"
#define PRINT(macro, id, symbol, name, domain, does, first, last, params, names, args, ...)        \
    print_row(#macro "|" #id "|" #symbol "|" #name "|" #domain "|" #does "|" #first "|" #last,     \
              #params, #names, args, __VA_ARGS__)

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
            printf("%s %s;", arg_kind_name(f->args[j].kind), f->args[j].label);
        putchar('\n');
    }
    printf("CRC|%u\n", api_table_crc());
}

int main(void)
{
#define API_ROLE(NAME, class, cost, capture, memory)                                               \
    printf("ROLE|%s|%s|%s\n", #NAME, api_class_name(API_##class), #memory);
#include "api/api_roles.def"
#define API(id, symbol, name, domain, does, first, last, proc, returns, params, names, ...)        \
    PRINT(API, id, symbol, name, domain, does, first, last, params, names, "" __VA_ARGS__,         \
          #returns, UNPACK proc);
#define API_VARIANT(id, symbol, name, domain, does, first, last, proc, returns, params, names,     \
                    ...)                                                                           \
    PRINT(API_VARIANT, id, symbol, name, domain, does, first, last, params, names, "" __VA_ARGS__, \
          #returns, UNPACK proc);
#define DISPATCH(symbol, domain, returns, params, names, low_id, high_id, high_first, high_since)  \
    puts("DISPATCH|" #symbol "|" #params "|" #low_id "|" #high_id "|" #high_first);
#define HOOK(symbol, domain, proc, returns, params)                                                \
    PRINT(HOOK, symbol, symbol, symbol, domain, , , , params, , "", #returns, UNPACK proc);
#define LIBRARY(symbol, name, domain, does, returns, params, names, ...)                           \
    puts("LIBRARY|" #symbol "|" #domain "|" #does "|" #returns "|" #params "|" __VA_ARGS__);
#include "api/api.def"
    print_table();
    return 0;
}
