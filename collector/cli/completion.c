/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verb `completion`: scripts for bash, zsh and fish, which ask for candidates of the last word
 * of a command line ('completion words -- WORD...'). The answer comes from the tables of verbs,
 * options and settings.
 */
#include <stdio.h>
#include <string.h>

#include "base/message.h"
#include "base/options.h"
#include "base/text.h"
#include "output/output.h"
#include "settings.h"
#include "table/table.h"

/* ---- candidates ------------------------------------------------------------------------------ */

struct typed {
    const char *word;
    const char *part; /* the part of the word to complete; the text before it stays */
};

static bool has_letters(const char *text, size_t length, const char *letters)
{
    return memmem(text, length, letters, strlen(letters)) != NULL;
}

/* Prints a candidate if it completes the typed part: the word, a tab, its help. */
static void completion_put(const struct typed *t, const char *word, size_t length, const char *help)
{
    size_t part = strlen(t->part);
    if (part > length || memcmp(word, t->part, part) != 0)
        return;
    printf("%.*s%.*s\t%s\n", (int)(t->part - t->word), t->word, (int)length, word, help);
}

/* Prints candidates of "a|b|c", "FILE" or "TIME|off"; words in capitals are placeholders. */
static void completion_put_value(const struct typed *t, const char *text, size_t length)
{
    if (has_letters(text, length, "FILE"))
        puts(":file");
    else if (has_letters(text, length, "DIR"))
        puts(":folder");
    for (size_t at = 0, word; at < length; at += word + 1) {
        word = strcspn(text + at, "|");
        word = word < length - at ? word : length - at;
        if (text[at] < 'A' || text[at] > 'Z')
            completion_put(t, text + at, word, "");
    }
}

/* Prints the words of a value that help only describes; false: none. */
static bool put_words(const struct typed *t, const struct option *o)
{
    const char *before = "";
    for (unsigned i = 0;; i++) {
        const struct table_info *table = o->table_at ? o->table_at(i) : NULL;
        const char *word = table ? table->name : o->word_at ? o->word_at(i) : NULL;
        if (!word)
            return i > 0;
        if (strcmp(word, before) != 0)
            completion_put(t, word, strlen(word), "");
        before = word;
    }
}

/* Completes the last one of words with commas. */
static void put_option_value(const struct option *o, struct typed t)
{
    const char *comma = strrchr(t.part, ',');
    t.part = comma ? comma + 1 : t.part;
    if (!put_words(&t, o))
        completion_put_value(&t, o->value, strlen(o->value));
}

/* Finds the option of "-o", "--output" or "--output=..."; NULL: none. */
static const struct option *completion_find(const struct verb *verb, const char *word)
{
    const struct option *o = NULL;
    for (unsigned i = 0; word[0] == '-' && (o = option_at(verb, i)); i++) {
        bool is_letter = o->letter && word[1] == o->letter && !word[2];
        if (is_letter ||
            (o->name && word[1] == '-' && word_is(word + 2, strcspn(word + 2, "="), o->name)))
            return o;
    }
    return NULL;
}

/* Whether the option takes the next word as its value. */
static bool takes_word(const struct option *o)
{
    return o->value && !option_alone(o);
}

static void put_options(const struct typed *t, const struct verb *verb)
{
    const struct option *o;
    for (unsigned i = 0; (o = option_at(verb, i)); i++) {
        if (!o->help || o->in == HELP_TUNING) /* set with --tune; the name works, too */
            continue;
        char letter[] = {'-', o->letter, '\0'}, name[256];
        if (o->letter)
            completion_put(t, letter, 2, o->help);
        completion_put(t, name, (size_t)snprintf(name, sizeof name, "--%s", o->name), o->help);
    }
}

static void put_verbs(const struct typed *t, const struct verb *const *verbs)
{
    for (; *verbs; verbs++)
        if (!((*verbs)->takes & VERB_OLD))
            completion_put(t, (*verbs)->name, strlen((*verbs)->name), (*verbs)->help);
}

/* Prints candidates of operands; "[DIR]" is optional. An option's value lists its words. */
static void put_operands(const struct typed *t, const struct verb *verb,
                         const struct verb *const *verbs)
{
    bool is_optional = verb->operands[0] == '[';
    const char *text = verb->operands + is_optional;
    const struct option *o;
    if (has_letters(text, strlen(text), "VERB"))
        put_verbs(t, verbs);
    for (unsigned i = 0; (o = option_at(verb, i)); i++)
        if (o->word_at && strncmp(text, o->value, strlen(o->value)) == 0)
            put_option_value(o, *t);
    completion_put_value(t, text, is_optional ? strcspn(text, "]") : strlen(text));
}

/* Answers for the words after "gpuprof"; the last one is being typed. bash splits --option=value
 * into words. ":program N": a command line begins at word N; ":file", ":folder": any of these. */
static void completion_answer(const struct verb *const *verbs, char *const *words, unsigned count)
{
    const struct verb *const *verb = verbs;
    unsigned last = count - 1, at = 1;
    const char *word = strcmp(words[last], "=") == 0 ? "" : words[last];
    struct typed typed = {word, word};
    const struct option *o;
    if (!last) {
        put_verbs(&typed, verbs);
        completion_put(&typed, "--help", 6, "Print this help");
        completion_put(&typed, "--version", 9, "Print the version");
        return;
    }
    while (*verb && strcmp((*verb)->name, words[0]) != 0)
        verb++;
    if (!*verb)
        return;
    bool is_program = (*verb)->takes & TAKES_PROGRAM, is_end = false;
    for (; at < last && !is_end && (words[at][0] == '-' || !is_program); at++) {
        is_end = is_program && strcmp(words[at], "--") == 0;
        o = is_end || strchr(words[at], '=') ? NULL : completion_find(*verb, words[at]);
        bool is_apart = at + 1 < last && strcmp(words[at + 1], "=") == 0;
        if (!o || (!takes_word(o) && !is_apart))
            continue;
        at += 1u + is_apart;
        if (at >= last && takes_word(o))
            put_option_value(o, typed);
        if (at >= last)
            return;
    }
    const char *equals = strchr(word, '=');
    o = equals ? completion_find(*verb, word) : NULL;
    if (is_program && (is_end || at < last || word[0] != '-'))
        printf(":program\t%u\n", at + 1);
    else if (o && takes_word(o))
        put_option_value(o, (struct typed){word, equals + 1});
    else if (word[0] == '-')
        put_options(&typed, *verb);
    else
        put_operands(&typed, *verb, verbs);
}

/* ---- the shells ------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    const char *script;
} shells[] = {
    {"bash",
     "# bash completion of gpuprof; made by 'gpuprof completion bash'.\n"
     "_gpuprof() {\n"
     "    local word=${COMP_WORDS[COMP_CWORD]} line lines\n"
     "    COMPREPLY=()\n"
     "    mapfile -t lines < <(\"${COMP_WORDS[0]}\" completion words -- \\\n"
     "        \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
     "    [[ $word == '=' ]] && word=''\n"
     "    for line in \"${lines[@]}\"; do\n"
     "        case $line in\n"
     "        :program*)\n"
     "            line=${line#*$'\\t'}\n"
     "            if declare -F _command_offset >/dev/null; then\n"
     "                _command_offset $line\n"
     "            elif ((line == COMP_CWORD)); then\n"
     "                mapfile -t COMPREPLY < <(compgen -c -- \"$word\")\n"
     "            else\n"
     "                mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
     "            fi\n"
     "            ;;\n"
     "        :file | :folder)\n"
     "            compopt -o filenames 2>/dev/null\n"
     "            [[ $line == :file ]] && line=-f || line=-d\n"
     "            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen $line -- \"$word\")\n"
     "            ;;\n"
     "        *) COMPREPLY+=(\"${line%%$'\\t'*}\") ;;\n"
     "        esac\n"
     "    done\n"
     "}\n"
     "complete -F _gpuprof gpuprof\n"},
    {"zsh", "#compdef gpuprof\n"
            "# zsh completion of gpuprof; made by 'gpuprof completion zsh'.\n"
            "_gpuprof() {\n"
            "    local line kind\n"
            "    local -a offers\n"
            "    for line in \"${(@f)$($words[1] completion words -- \\\n"
            "            \"${(@Q)words[2,CURRENT]}\" 2>/dev/null)}\"; do\n"
            "        kind=${line%%$'\\t'*} line=${line#*$'\\t'}\n"
            "        case $kind in\n"
            "        :program) shift $line words; ((CURRENT -= line)); _normal; return ;;\n"
            "        :file) compset -P '-*='; _files ;;\n"
            "        :folder) compset -P '-*='; _files -/ ;;\n"
            "        ?*) offers+=(\"${kind//:/\\\\:}:$line\") ;;\n"
            "        esac\n"
            "    done\n"
            "    _describe gpuprof offers\n"
            "}\n"
            "# Sourced, it is known from here on; found by compinit, it is called now.\n"
            "if [[ $funcstack[1] == _gpuprof ]]; then\n    _gpuprof \"$@\"\nelse\n"
            "    compdef _gpuprof gpuprof\nfi\n"},
    {"fish", "# fish completion of gpuprof; made by 'gpuprof completion fish'.\n"
             "function __gpuprof_offers\n"
             "    set -l words (commandline -opc)\n"
             "    set -l last (commandline -ct)\n"
             "    set -l kept (string match -r -- '^-[^=]*=' \"$last\")\n"
             "    set -l path (string replace -r -- '^-[^=]*=' '' \"$last\")\n"
             "    for line in ($words[1] completion words -- $words[2..-1] \"$last\" 2>/dev/null)\n"
             "        switch $line\n"
             "            case ':program*'\n"
             "                set -l from (math 1 + (string split \\t -- $line)[2])\n"
             "                complete -C (string join ' ' -- $words[$from..-1] \"$last\")\n"
             "            case :file\n"
             "                printf '%s\\n' \"$kept\"(__fish_complete_path \"$path\")\n"
             "            case :folder\n"
             "                printf '%s\\n' \"$kept\"(__fish_complete_directories \"$path\")\n"
             "            case '*'\n"
             "                echo $line\n"
             "        end\n"
             "    end\n"
             "end\n"
             "complete -c gpuprof -f -a '(__gpuprof_offers)'\n"},
};

static enum exit_code completion_run(const struct options *options)
{
    if (options->path_count > 1 && strcmp(options->paths[0], "words") == 0) {
        completion_answer(options->verbs, options->paths + 1, options->path_count - 1);
        return standard_output_end();
    }
    for (size_t i = 0; options->path_count == 1 && i < sizeof shells / sizeof shells[0]; i++)
        if (strcmp(options->paths[0], shells[i].name) == 0) {
            fputs(shells[i].script, stdout);
            return standard_output_end();
        }
    return usage_error("completion: name a shell: bash, zsh or fish");
}

VERB_IS(completion, completion_run, NULL, VERB_NO_OWN, VERB_MORE, "bash|zsh|fish",
        "print the completion script of a shell",
        {PART_EXAMPLE, "source <(gpuprof completion bash)", "complete in this shell"},
        {PART_EXAMPLE, "gpuprof completion fish > ~/.config/fish/completions/gpuprof.fish",
         "complete in every fish shell"},
        {PART_STATUS, "0", "it was printed"});
