/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verb `completion`: what bash, zsh and fish need to complete gpuprof's command lines, made of
 * the tables of verbs, options and settings.
 */
#include <stdio.h>
#include <string.h>

#include "base/message.h"
#include "base/options.h"
#include "output/verb_output.h"
#include "settings.h"
#include "table/table.h"

#define WORDS_BYTES 1024

/* ---- what is in the tables ------------------------------------------------------------------- */

/* What stands behind an option, or behind them all. */
struct value {
    char words[WORDS_BYTES]; /* to be typed as they are, with spaces between; "": none */
    bool has_files;
    bool has_folders;
};

struct offer {
    struct option info;
    bool is_list;              /* its value may be several words with commas between */
    char choices[WORDS_BYTES]; /* its value, where a table has what help only describes */
};

/* Of "a|b|c", "FILE", "TIME|off": what is in capitals stands for something else. */
static struct value value_of(const char *text)
{
    struct value v = {.words = ""};
    size_t length = 0;
    while (*text) {
        size_t word = strcspn(text, "|");
        bool is_name = text[0] >= 'A' && text[0] <= 'Z';
        v.has_files |= is_name && memmem(text, word, "FILE", 4) != NULL;
        v.has_folders |= is_name && memmem(text, word, "DIR", 3) != NULL;
        if (!is_name && length + word + 2 < sizeof v.words)
            length += (size_t)snprintf(v.words + length, sizeof v.words - length, "%s%.*s",
                                       length ? " " : "", (int)word, text);
        text += word + (text[word] == '|');
    }
    return v;
}

static bool takes_program(const struct verb *verb)
{
    return strstr(verb->operands, "PROGRAM") != NULL;
}

static bool takes_verb(const struct verb *verb)
{
    return strstr(verb->operands, "VERB") != NULL;
}

static const char *word_at(const struct option *o, unsigned index)
{
    const struct table_info *table = o->table_at ? o->table_at(index) : NULL;
    return table ? table->name : o->word_at ? o->word_at(index) : NULL;
}

/* "a|b|c" of the words that a value may be, where help only describes them. */
static void list_choices(struct offer *o, const struct option *info)
{
    *o = (struct offer){.info = *info};
    const char *word, *before = "";
    size_t length = 0;
    for (unsigned i = 0; (word = word_at(&o->info, i)); i++, before = word)
        if (length < sizeof o->choices && strcmp(word, before) != 0)
            length += (size_t)snprintf(o->choices + length, sizeof o->choices - length, "%s%s",
                                       length ? "|" : "", word);
    o->is_list = length && strchr(o->info.value, ',');
    if (length)
        o->info.value = o->choices;
}

/* "[DIR]" may be left out, and is the same otherwise. Operands that begin as the value of an option
 * is called are words that this lists. */
static struct value operands_of(const struct verb *verb)
{
    const struct option *option;
    struct offer first = {.choices = ""};
    char text[WORDS_BYTES];
    bool is_optional = verb->operands[0] == '[';
    snprintf(text, sizeof text, "%s", verb->operands + is_optional);
    if (is_optional)
        text[strcspn(text, "]")] = '\0';
    for (unsigned i = 0; (option = option_at(verb, i)); i++)
        if (option->word_at && strncmp(text, option->value, strlen(option->value)) == 0)
            list_choices(&first, option);
    struct value v = value_of(text), words = value_of(first.choices);
    if (first.choices[0])
        memcpy(v.words, words.words, sizeof v.words);
    return v;
}

/* The verb's options, and behind them its settings; false: there are no more. */
static bool offer_at(const struct verb *verb, unsigned index, struct offer *offer)
{
    const struct option *option;
    for (unsigned i = 0; (option = option_at(verb, i)); i++) {
        if (!option->help || index--)
            continue;
        list_choices(offer, option);
        return true;
    }
    if (!(verb->takes & TAKES_PROGRAM) || index >= SETTING_COUNT)
        return false;
    const struct setting_info *s = &setting_infos[index];
    *offer =
        (struct offer){.info = {.name = s->option,
                                .value = setting_alone((enum setting_index)index) ? NULL : s->value,
                                .help = s->help},
                       .is_list = s->kind == SETTING_KIND_FLAGS};
    return true;
}

/* Between single quotes, of which `quote` stands for one; a backslash before each of `escaped`. */
static void put_quoted(const char *text, const char *escaped, const char *quote)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs(quote, stdout);
        else if (*text == '\n')
            putchar(' ');
        else
            printf("%s%c", strchr(escaped, *text) ? "\\" : "", *text);
    }
}

/* ---- bash ------------------------------------------------------------------------------------ */

static const char bash_head[] =
    "# bash completion of gpuprof; made by 'gpuprof completion bash'.\n"
    "\n"
    "# The words of $1 that go on from $2, whose last part it is where that is a list with "
    "commas.\n"
    "_gpuprof_offer() {\n"
    "    local word kept='' last=${2##*,} # in a pattern bash 5.2 takes the expansion wrongly\n"
    "    [[ $2 == *,* ]] && kept=${2%,*},\n"
    "    for word in $1; do\n"
    "        case $word in\n"
    "        :file | :folder)\n"
    "            compopt -o filenames 2>/dev/null\n"
    "            [[ $word == :file ]] && word=-f || word=-d\n"
    "            mapfile -t COMPREPLY < <(compgen \"$word\" -- \"$2\")\n"
    "            ;;\n"
    "        :*) ;;\n"
    "        \"$last\"*) COMPREPLY+=(\"$kept$word\") ;;\n"
    "        esac\n"
    "    done\n"
    "}\n"
    "\n"
    "# Of the verb $1: its options, what follows them, and the value of its option $2 (\":any\": "
    "one\n"
    "# that nobody can tell; \"\": none, or no such option).\n"
    "_gpuprof_table() {\n"
    "    options='' operands='' value=''\n"
    "    case $1 in\n";

static const char bash_tail[] =
    "    esac\n"
    "}\n"
    "\n"
    "_gpuprof() {\n"
    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    local verb=${COMP_WORDS[1]} at=2 options operands value\n"
    "    COMPREPLY=()\n"
    "    if ((COMP_CWORD == 1)); then\n"
    "        _gpuprof_offer \"$_gpuprof_verbs --help --version\" \"$word\"\n"
    "        return\n"
    "    fi\n"
    "    _gpuprof_table \"$verb\" ''\n"
    "    if [[ $operands == :program ]]; then\n"
    "        # Behind the program's name all is the program's.\n"
    "        while ((at < COMP_CWORD)) && [[ ${COMP_WORDS[at]} == -* ]]; do\n"
    "            _gpuprof_table \"$verb\" \"${COMP_WORDS[at++]}\"\n"
    "            [[ ${COMP_WORDS[at - 1]} == -- ]] && break\n"
    "            [[ ${COMP_WORDS[at]} == '=' ]] && ((at++)) # of --option=value, three words\n"
    "            [[ $value || ${COMP_WORDS[at - 1]} == '=' ]] && ((at++))\n"
    "        done\n"
    "        if ((at < COMP_CWORD)) || { ((at == COMP_CWORD)) && [[ $word != -* ]]; }; then\n"
    "            if declare -F _command_offset >/dev/null; then\n"
    "                _command_offset $at\n"
    "            elif ((at == COMP_CWORD)); then\n"
    "                mapfile -t COMPREPLY < <(compgen -c -- \"$word\")\n"
    "            else\n"
    "                _gpuprof_offer :file \"$word\"\n"
    "            fi\n"
    "            return\n"
    "        fi\n"
    "    fi\n"
    "    [[ $word == '=' ]] && word=''\n"
    "    [[ $before == '=' ]] && before=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    _gpuprof_table \"$verb\" \"$before\"\n"
    "    if [[ $value ]]; then\n"
    "        _gpuprof_offer \"$value\" \"$word\"\n"
    "    elif [[ $word == -* ]]; then\n"
    "        _gpuprof_offer \"$options\" \"$word\"\n"
    "    else\n"
    "        _gpuprof_offer \"$operands\" \"$word\"\n"
    "    fi\n"
    "}\n"
    "complete -F _gpuprof gpuprof\n";

static void bash_value(const struct value *v)
{
    const char *files = v->has_files ? ":file" : v->has_folders ? ":folder" : "";
    printf("'%s%s%s'", files, *files && *v->words ? " " : "", v->words);
}

static void bash_option(const struct option *info, const char *between)
{
    if (info->letter)
        printf("-%c%s", info->letter, info->name ? between : "");
    if (info->name)
        printf("--%s", info->name);
}

static void bash_verb(const struct verb *verb)
{
    struct offer o;
    struct value operands = operands_of(verb);
    printf("    %s)\n        options='", verb->name);
    for (unsigned i = 0; offer_at(verb, i, &o); i++) {
        bash_option(&o.info, " ");
        putchar(' ');
    }
    printf("'\n        operands=");
    if (takes_verb(verb))
        printf("$_gpuprof_verbs");
    else if (takes_program(verb))
        printf(":program");
    else
        bash_value(&operands);
    printf("\n        case $2 in\n");
    for (unsigned i = 0; offer_at(verb, i, &o); i++) {
        if (!o.info.value)
            continue;
        struct value v = value_of(o.info.value);
        printf("        ");
        bash_option(&o.info, " | ");
        printf(") value=");
        if (v.words[0] || v.has_files || v.has_folders)
            bash_value(&v);
        else
            printf(":any");
        printf(" ;;\n");
    }
    printf("        esac\n        ;;\n");
}

static void print_bash(const struct verb *const *verbs)
{
    printf("_gpuprof_verbs='");
    for (size_t i = 0; verbs[i]; i++)
        printf("%s%s", i ? " " : "", verbs[i]->name);
    printf("'\n\n%s", bash_head);
    for (size_t i = 0; verbs[i]; i++)
        bash_verb(verbs[i]);
    fputs(bash_tail, stdout);
}

/* ---- zsh ------------------------------------------------------------------------------------- */

#define ZSH_QUOTE "'\\''"

/* ":FILE:_files"; ":a|b:(a b)". */
static void zsh_value(const char *text, bool is_list)
{
    struct value v = value_of(text);
    printf(":");
    put_quoted(text, ":", ZSH_QUOTE);
    if (v.words[0] && is_list)
        printf(": _values -s , word %s", v.words);
    else if (v.words[0])
        printf(":(%s)", v.words);
    else
        printf(":%s", v.has_files ? "_files" : v.has_folders ? "_files -/" : " ");
}

static void zsh_option(const struct offer *o, char letter, const char *name)
{
    printf(" \\\n            '");
    if (o->info.letter && o->info.name) /* one of the two is enough */
        printf("(-%c --%s)", o->info.letter, o->info.name);
    if (letter)
        printf("-%c%s", letter, o->info.value ? "+" : "");
    else
        printf("--%s%s", name, o->info.value ? "=" : "");
    printf("[");
    put_quoted(o->info.help, "[]\\", ZSH_QUOTE);
    printf("]");
    if (o->info.value)
        zsh_value(o->info.value, o->is_list);
    printf("'");
}

static void zsh_verb(const struct verb *verb)
{
    struct offer o;
    struct value operands = operands_of(verb);
    printf("    %s)\n        _arguments -S", verb->name);
    for (unsigned i = 0; offer_at(verb, i, &o); i++) {
        if (o.info.letter)
            zsh_option(&o, o.info.letter, NULL);
        if (o.info.name)
            zsh_option(&o, 0, o.info.name);
    }
    if (takes_program(verb))
        printf(" \\\n            '(-):program: _command_names -e' '*::argument: _normal'");
    else if (takes_verb(verb))
        printf(" \\\n            ':verb:_describe verb verbs'");
    else if (operands.words[0])
        printf(" \\\n            ':word:(%s)'", operands.words);
    if (operands.has_files || operands.has_folders)
        printf(" \\\n            '*:recording:_files%s'", operands.has_files ? "" : " -/");
    printf("\n        ;;\n");
}

static void print_zsh(const struct verb *const *verbs)
{
    printf("#compdef gpuprof\n"
           "# zsh completion of gpuprof; made by 'gpuprof completion zsh'.\n\n"
           "_gpuprof() {\n    local -a verbs\n    verbs=(\n");
    for (size_t i = 0; verbs[i]; i++) {
        printf("        '%s:", verbs[i]->name);
        put_quoted(verbs[i]->help, ":\\", ZSH_QUOTE);
        printf("'\n");
    }
    printf("    )\n"
           "    if ((CURRENT == 2)); then\n"
           "        _describe verb verbs\n"
           "        return\n"
           "    fi\n"
           "    shift words\n"
           "    ((CURRENT--))\n"
           "    case $words[1] in\n");
    for (size_t i = 0; verbs[i]; i++)
        zsh_verb(verbs[i]);
    printf("    esac\n}\n\n"
           "# Sourced, it is known from here on; found by compinit, it is called now.\n"
           "if [[ $funcstack[1] == _gpuprof ]]; then\n    _gpuprof \"$@\"\nelse\n"
           "    compdef _gpuprof gpuprof\nfi\n");
}

/* ---- fish ------------------------------------------------------------------------------------ */

static void fish_verb(const struct verb *verb)
{
    struct offer o;
    struct value operands = operands_of(verb);
    printf("complete -c gpuprof -f -n __fish_use_subcommand -a %s -d '", verb->name);
    put_quoted(verb->help, "\\", "\\'");
    printf("'\n");
    for (unsigned i = 0; offer_at(verb, i, &o); i++) {
        printf("complete -c gpuprof -n '__fish_seen_subcommand_from %s'", verb->name);
        if (o.info.letter)
            printf(" -s %c", o.info.letter);
        if (o.info.name)
            printf(" -l %s", o.info.name);
        if (o.info.value) {
            struct value v = value_of(o.info.value);
            printf(" %s", v.has_files || v.has_folders ? "-r -F" : "-x");
            if (v.words[0])
                printf(" -a '%s'", v.words);
        }
        printf(" -d '");
        put_quoted(o.info.help, "\\", "\\'");
        printf("'\n");
    }
    printf("complete -c gpuprof -n '__fish_seen_subcommand_from %s' ", verb->name);
    if (takes_program(verb))
        printf("-x -a '(__fish_complete_subcommand --fcs-skip=2)'\n");
    else if (takes_verb(verb))
        printf("-x -a \"$gpuprof_verbs\"\n");
    else
        printf("%s -a '%s'\n", operands.has_files || operands.has_folders ? "-F" : "-f",
               operands.words);
}

static void print_fish(const struct verb *const *verbs)
{
    printf("# fish completion of gpuprof; made by 'gpuprof completion fish'.\n"
           "set -l gpuprof_verbs");
    for (size_t i = 0; verbs[i]; i++)
        printf(" %s", verbs[i]->name);
    printf("\ncomplete -c gpuprof -n __fish_use_subcommand -s h -l help -d 'print this help'\n"
           "complete -c gpuprof -n __fish_use_subcommand -l version -d 'print the version'\n");
    for (size_t i = 0; verbs[i]; i++)
        fish_verb(verbs[i]);
}

/* --------------------------------------------------------------------------------------------- */

static enum exit_code run(const struct options *options)
{
    static const struct {
        const char *name;
        void (*print)(const struct verb *const *verbs);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    for (size_t i = 0; options->path_count == 1 && i < sizeof shells / sizeof shells[0]; i++)
        if (strcmp(options->paths[0], shells[i].name) == 0) {
            shells[i].print(options->verbs);
            return standard_output_end();
        }
    return usage_error("completion: name one shell: bash, zsh or fish");
}

VERB_IS(completion, run, NULL, VERB_NO_OWN, 0, "bash|zsh|fish",
        "print what a shell needs to complete gpuprof's command lines",
        {PART_EXAMPLE, "source <(gpuprof completion bash)", "without an installation"},
        {PART_STATUS, "0", "it was printed"}, {PART_STATUS, "1", "input or output failed"},
        {PART_STATUS, "2", "a wrong option, or nothing to read, or to show"});
