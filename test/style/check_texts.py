#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules on texts that users read: prints one line per violation, exits 1 if there are more of
a kind than LEFT allows.

The texts are read from the declarations that the program prints them from: settings.def, verbs and
their options, manual rows, findings, tables and columns, messages, and the tables of sentences that
SENTENCES names. For each text:

- A sentence has at most 25 words. A semicolon does not end one.
- No turn of BANNED, which are turns of another language in English words.
- A document of DOCUMENTS, and each of its chapters, is no larger than that says.
- Help and messages: a text of one sentence has no full stop at its end, one of several has. A
  finding's title has none; its advice has one.
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WORDS_MAX = 25
# Texts that are still to be rewritten, by kind; only ever lower a number, and remove a row at 0.
LEFT = {}
# What else holds sentences: the file, the macro of a row, the arguments that are texts.
SENTENCES = (("formats/settings.def", "SETTING", "setting", (9,)),
             ("collector/analyse/finding_kinds.def", "FINDING", "title", (4,)),
             ("collector/analyse/finding_kinds.def", "FINDING", "advice", (5,)),
             ("collector/analyse/finding_kinds.def", "FINDING", "advice", (7,)),
             ("collector/cli/limits.def", "LIMIT", "advice", (3,)),
             ("collector/cli/limits.def", "GROWING", "advice", (4,)),
             ("collector/cli/json_keys.def", "JSON_KEY", "column", (1,)),
             ("collector/export/event_columns.def", "EVENT_COLUMN", "column", (2,)),
             ("collector/record/losses.def", "LOSS", "loss", (5,)),
             ("collector/export/stats_reports.def", "STATS_REPORT", "note", (4,)),
             ("formats/counters.def", "COUNTER", "loss", (3,)))
BANNED = re.compile("|".join((
    r"\bof which\b", r"\bto be had\b", r"\bwhose is\b", r"\bfor who\b", r"\bwhat stands\b",
    r"\bwho(ever)? (knows|asks|wants|types)\b", r"\bwhich may be\b", r"\bwhat there is\b",
    r"\bwhat (\w+ ){0,3}(is|are|was|were)\b(?! (in|on) )", r"\bso (long|many)\b(?! that)",
    r"\b(for|from|of|than|after|before|since) so (long|many|much|few)\b", r"\bbut for\b",
    r"\bas it (is|was|were|has|had)\b", r"\bas one (would|has|was)\b", r"\bsuch an? one\b",
    r"\b(those of|of (those|these)\b(?! \w+s\b))", r"\blikewise\b", r"\bfrom \d+ on\b",
    r"\bfrom (then|there|here|it|that) on\b",
    r"\b(the|its|their|'s|first|whose) begin\b", r"\bbegins? of\b",
    r"\b(is|are|was|were) to be \w+", r"\b(is|are) told\b", r"\btold apart\b", r"\bis said\b",
    r"\bstands? (there|before|behind|for|beside)\b", r"\bnone is\b", r"\bno (news|name) is\b",
    r"\b(does|do) not$", r"\bnot all of\b", r"\bas many as\b", r"\bis there twice\b",
    r"\bof each\b(?! \w)")), re.IGNORECASE)

# For users: the most bytes of the whole and of a chapter.
DOCUMENTS = {"GUIDE.md": (80_000, 8_000), "formats/answers.md": (90_000, 10_000)}
NO_PROSE = re.compile(r"^(    |\||#|<).*$", re.MULTILINE)

LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
TOKEN = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[()\[\]{},;]""",
                   re.DOTALL)
# What prints or keeps a line on a problem: functions and macros whose texts are messages.
MESSAGES = ("message|usage_error|say|note|gpu_fail|refuse|set_reason|is_done|fine|limited|broken"
            "|say_why|say_command")
START = re.compile(rf"\b(VERB_IS|{MESSAGES})\(|\.(doc|about|title) = (?=\")"
                   r"|\bstruct option \w+\[\] = (\{)|\{(PART_)\w+,"
                   r"|\b(section sections|functions)\[\] = \{")
Text = collections.namedtuple("Text", "path line kind text")


def arguments(text, at):
    """The arguments from `at`, behind an opening bracket, to the bracket that closes it:
    (position, raw text) each, without comments."""
    depth, begin, found, parts = 0, at, [], []
    for token in TOKEN.finditer(text, at):
        word = token.group()
        if word.startswith("/"):
            parts.append(text[begin:token.start()])
            begin = token.end()
        elif word in "([{":
            depth += 1
        elif word in ")]}" or word == ";":
            depth -= 1
        if depth < 0 or (word == "," and depth == 0):
            raw = "".join(parts) + text[begin:token.start()]
            if raw.strip():
                found.append((at + len(raw) - len(raw.lstrip()), raw.strip()))
            at = begin = token.end()
            parts = []
        if depth < 0:
            break
    return found


def literal(raw):
    """What the literals of an argument say together; None: it is no text, or one of several."""
    raw = re.sub(r'^[A-Z]\w+ (?=")', "", raw)
    if not raw.startswith('"') or re.search(r"[?:(){}]", LITERAL.sub("", raw)):
        return None
    text = "".join(LITERAL.findall(re.sub(r"(?<=\")\s*PRI\w+", '"d"', raw)))
    return text.replace("\\n", " ").replace('\\"', '"').replace("\\\\", "\\")


def choices(raw):
    """The texts that an argument may be: `one ? "text" : other ? "text" : "text"`; words alone
    ("was", "s") are parts of a text."""
    for part in re.split(r"[?:](?=\s)", LITERAL.sub(lambda text: text.group().replace(
            "?", "\0").replace(":", "\1"), raw)):
        said = literal(part.strip().replace("\0", "?").replace("\1", ":"))
        if said and len(said.split()) > 2:
            yield said


def texts_of_option(rows):
    """Of {letter, name, value, what it does, help, ...}, rows of a list of options."""
    for at, row in rows:
        values = [raw for _, raw in arguments(row, 1) if not raw.startswith(".")]
        helps = [text for text in map(literal, values[3:]) if text]
        if helps:
            yield at, "option", helps[-1]


def texts_of_verb(values):
    """Of VERB_IS(name, run, options, own..., takes, operands, help, ...)."""
    plain = [(at, literal(raw)) for at, raw in values]
    helps = [(at, text) for at, text in plain if text is not None]
    if len(helps) > 1:
        yield helps[1][0], "verb", helps[1][1]


def texts_of(path, text):
    for start in START.finditer(text):
        word = start[1] or start[2] or start[4] or start[5] or "option"
        values = arguments(text, start.end())
        if word == "option":
            found = texts_of_option(values)
        elif word == "VERB_IS":
            found = texts_of_verb(values)
        elif word == "PART_":
            found = [(at, "manual", literal(raw)) for at, raw in values[1:2]]
        elif start[5]:
            rows = [(at, arguments(raw, 1)) for at, raw in values]
            found = [(at, "section", literal(row[1][1])) for at, row in rows if len(row) > 1]
        elif start[1]:
            found = [(at, "message", said) for at, raw in values for said in choices(raw)]
        else:
            kind = {"doc": "column"}.get(word, "table")
            found = [(start.end(), kind, literal(values[0][1]))] if values else []
        for at, kind, said in found:
            if said:
                yield Text(path, text.count("\n", 0, at) + 1, kind, said)


def texts():
    for folder in ("collector", "inject"):
        for path in sorted((ROOT / folder).rglob("*.[ch]")):
            yield from texts_of(path.relative_to(ROOT), path.read_text())
    for name, macro, kind, places in SENTENCES:
        text = (ROOT / name).read_text()
        for start in re.finditer(rf"^{macro}\(", text, re.MULTILINE):
            values = arguments(text, start.end())
            for place in places:
                at, raw = values[place]
                yield Text(pathlib.Path(name), text.count("\n", 0, at) + 1, kind, literal(raw))


def sentences(text):
    return [part for part in re.split(r"(?<=[^.][.?!])\s+(?=[^a-z]|gpuprof )", text) if part]


def wrong(kind, text):
    """What is against the rules in a text of this kind."""
    parts = sentences(text)
    for part in parts:
        words = [word for word in part.split() if re.search(r"\w", word)]
        if len(words) > WORDS_MAX:
            yield f"{len(words)} words: {part}"
    for turn in BANNED.finditer(text):
        yield f"'{turn.group()}': {text}"
    has_stop = re.search(r"[^.]\.$", text) is not None
    if kind in ("advice", "section") or (kind != "title" and len(parts) > 1):
        if not has_stop:
            yield f"no full stop at the end: {text}"
    elif has_stop:
        yield f"a full stop at the end: {text}"


def wrong_document(name):
    """What is against the rules in a document: sizes, and sentences outside of code and tables."""
    text = (ROOT / name).read_text(encoding="utf-8")
    for part, most in [(text, DOCUMENTS[name][0]), *((chapter, DOCUMENTS[name][1]) for chapter in
                                                     re.split(r"^(?=## )", text, flags=re.M))]:
        if len(part.encode()) > most:
            yield f"{len(part.encode())} bytes, more than {most}: {part.partition(chr(10))[0]}"
    for part in re.split(r"\n\s*\n|\n(?=- |\d+\. )", NO_PROSE.sub("\n", text)):
        for said in re.split(r"(?<=[.?!:])\s+(?=[A-Z*`(])", " ".join(part.split())):
            words = [word for word in said.split() if re.search(r"\w", word)]
            if len(words) > WORDS_MAX:
                yield f"{len(words)} words: {said}"


def violations(found=None):
    for said in texts() if found is None else found:
        for line in wrong(said.kind, said.text):
            yield said.kind, f"{said.path}:{said.line}: {said.kind}: {line}"
    for name in DOCUMENTS if found is None else ():
        for line in wrong_document(name):
            yield "document", f"{name}: {line}"


def main():
    found = list(violations())
    counts = collections.Counter(kind for kind, _ in found)
    for kind, line in found:
        if len(sys.argv) > 1 or counts[kind] > LEFT.get(kind, 0):
            print(line)
    print(dict(counts), file=sys.stderr)
    return 1 if any(counts[kind] > LEFT.get(kind, 0) for kind in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
