#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the rendering of chat templates with that of transformers.

usage: chat_templates_against_transformers.py --program CHAT_RENDER [--templates FOLDER]... [--fuzz N] [--seed N]

  --program    the program chat_render, built from tests/support/chat_render.cpp
  --templates  a folder of .jinja files, e.g. of an unpacked package of trl or axolotl; all are rendered with
               conversations of many kinds
  --fuzz       number of random templates (default: 20000)
  --seed       of the random templates (default: 1)

Text, spans of generation blocks, and whether the rendering fails must be equal. Exits with 77 if jinja2 or
transformers is not installed.
"""
import argparse
import datetime
import json
import pathlib
import random
import subprocess
import sys
import warnings

try:
    import jinja2  # noqa: F401
    from transformers.utils import chat_template_utils
except ImportError as missing:
    print(f"skipped: needs jinja2 and transformers, {missing}")
    sys.exit(77)

warnings.filterwarnings("ignore", category=SyntaxWarning)  # e.g. of 1[a], which fails in both
DATE = datetime.datetime(2026, 3, 14, 15, 9, 26)
DATE_SECONDS = 1773500966


class FixedDate(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return DATE


chat_template_utils.datetime = FixedDate


def expected(source, variables):
    """The text and the spans of transformers, in bytes, or the error."""
    variables = dict(variables)
    variables.pop("date_now", None)
    try:
        template = chat_template_utils._compile_jinja_template(source)
        variables = {"messages": [], "tools": None, "documents": None, "add_generation_prompt": False, **variables}
        text, spans = chat_template_utils._render_with_assistant_indices(template, **variables)
        text.encode()
    except Exception as error:  # noqa: BLE001: any failure counts
        return {"error": f"{type(error).__name__}: {error}"}
    if not spans:
        return {"text": text, "spans": []}
    if text.isascii():
        return {"text": text, "spans": [list(span) for span in spans]}
    # Spans in macros and block sets may end after the text; then the bytes are those of what is there.
    return {"text": text, "spans": [[len(text[:b].encode()), len(text[:e].encode())] for b, e in spans]}


def conversations():
    """Pairs of a name and the variables of a template."""
    tool = {"type": "function", "function": {
        "name": "get_weather", "description": "Weather of a place, <now> & \"later\"",
        "parameters": {"type": "object", "required": ["city"], "properties": {
            "city": {"type": "string", "description": "Name of the city"},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
            "days": {"type": "integer", "minimum": 0, "maximum": 12345678901234567890123, "default": 1e16},
            "precise": {"type": ["boolean", "null"], "default": False, "nullable": True},
            "where": {"type": "array", "items": {"type": "number"}, "default": [1.5, -0.0, 1e-7, 0.1]},
            "deep": {"type": "object", "properties": {"x": {"type": "object", "properties": {}}},
                     "required": ["x"]}}},
        "return": {"type": "object", "description": "what comes back"}}}
    second = {"type": "function", "function": {"name": "stop", "description": "", "parameters": {
        "type": "object", "properties": {}}}}
    call = {"id": "call00001", "type": "function", "function": {"name": "get_weather", "arguments": {
        "city": "Zürich <b>", "days": 3, "precise": True, "unit": None, "where": [1, 2.5, "x"], "deep": {"a": {}}}}}
    string_call = {"id": "call00002", "type": "function",
                   "function": {"name": "get_weather", "arguments": "{\"city\": \"Paris\"}"}}
    bare_call = {"name": "stop", "arguments": {}}

    def user(text):
        return {"role": "user", "content": text}

    def assistant(text, **more):
        return {"role": "assistant", "content": text, **more}

    def system(text):
        return {"role": "system", "content": text}

    parts = [{"type": "text", "text": "Look: "}, {"type": "image"}, {"type": "text", "text": " what is it?"}]
    turns = {
        "none": [],
        "user": [user("Hello")],
        "pair": [user("Hello"), assistant("Hi there!")],
        "system": [system("Be brief."), user("Hello"), assistant("Hi.")],
        "only system": [system("Be brief.")],
        "two systems": [system("One."), system("Two."), user("Hello"), assistant("Hi.")],
        "late system": [user("Hello"), system("Late."), assistant("Hi.")],
        "turns": [system(" S \n"), user("  a\n"), assistant("\n b "), user("c"), assistant("d"), user("e")],
        "Unicode": [user("日本語 ß ÄÖ é 😀"), assistant("Straße \u2028 \u00a0 ﬁ Σίσυφος ΣΑΣ"), user("\u3000x\u3000")],
        "HTML": [user("<b>&amp; \"quoted\" 'single'</b>"), assistant("a < b > c & d")],
        "empty": [system(""), user(""), assistant("")],
        "no content": [user("a"), {"role": "assistant"}, user("b")],
        "null content": [user("a"), assistant(None), user("b")],
        "null user": [user(None), assistant("x")],
        "number": [user(5), assistant(1.5)],
        "two users": [user("a"), user("b"), assistant("c")],
        "assistant first": [assistant("a"), user("b"), assistant("c")],
        "unknown role": [{"role": "critic", "content": "x"}, user("b")],
        "no role": [{"content": "x"}],
        "developer": [{"role": "developer", "content": "Dev rules."}, user("b"), assistant("c")],
        "parts": [user(parts), assistant([{"type": "text", "text": "A cat."}])],
        "image only": [user([{"type": "image"}]), assistant("x")],
        "more parts": [system([{"type": "text", "text": "S"}]), user([{"type": "video"}, {"type": "audio"},
                                                                     {"type": "image_url", "image_url": "u"},
                                                                     {"type": "text", "content": "c"}, "plain"])],
        "empty parts": [user([]), assistant([])],
        "tool": [user("Weather?"), assistant("", tool_calls=[call]),
                 {"role": "tool", "name": "get_weather", "tool_call_id": "call00001", "content": "{\"temp\": 21}"},
                 assistant("21 degrees."), user("Thanks")],
        "tool null": [system("S"), user("Weather?"), assistant(None, tool_calls=[call]),
                      {"role": "tool", "name": "get_weather", "content": {"temp": 21.5, "ok": True}},
                      assistant("21.")],
        "tool parts": [user("Weather?"), assistant([{"type": "text", "text": "t"}], tool_calls=[call, call]),
                       {"role": "tool", "tool_call_id": "call00001", "content": [{"type": "text", "text": "21"}]},
                       {"role": "tool", "tool_call_id": "call00001", "content": [1, None, True]}, assistant("21.")],
        "tool string": [user("Weather?"), assistant("Let me see", tool_calls=[string_call]),
                        {"role": "tool", "name": "get_weather", "content": "21"}, assistant("It is 21.")],
        "tool bare": [user("Stop"), assistant("", tool_calls=[bare_call]),
                      {"role": "tool", "name": "stop", "content": "ok"}, assistant("done")],
        "ipython": [user("x"), assistant("y", tool_calls=[call]), {"role": "ipython", "content": {"output": "é"}}],
        "tool responses": [user("x"), {"role": "tool", "content": "1"}, {"role": "tool", "content": "2"}, user("y")],
        "no calls": [user("x"), assistant("y", tool_calls=[]), user("z"), assistant("w", tool_calls=None)],
        "ends with call": [user("x"), assistant("y", tool_calls=[call, string_call])],
        "thinking tags": [user("x"), assistant("<think>\nhm\n</think>\n\ny"), user("z"),
                          assistant("<think>a</think>b</think>c")],
        "reasoning": [user("x"), assistant("y", reasoning_content="because"), user("z"),
                      assistant("w", reasoning_content="\n again \n", thinking="old"), user("v"),
                      assistant("", reasoning_content="r", tool_calls=[call])],
        "thinking": [user("x"), assistant("y", thinking="because"), user("z"), assistant("w", thinking="")],
        "no_think": [system("S /no_think"), user("x /think"), assistant("y"), user("z /no_think")],
    }
    options = [
        {},
        {"add_generation_prompt": True},
        {"tools": [tool, second], "add_generation_prompt": True},
        {"tools": [tool], "enable_thinking": False, "documents": [{"title": "T", "text": "D <é>"}]},
        {"tools": [], "enable_thinking": True, "thinking": True, "reasoning_effort": "low", "builtin_tools":
            ["browser", "python"], "model_identity": "I.", "keep_past_thinking": True, "preserve_thinking": True},
        {"bos_token": None, "date_string": "1 Jan 2026", "tools_in_user_message": False, "tools": [tool]},
    ]
    for name, messages in turns.items():
        for number, option in enumerate(options):
            variables = {"messages": messages, "tools": None, "documents": None, "add_generation_prompt": False,
                         "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>", **option,
                         "date_now": DATE_SECONDS}
            if variables["bos_token"] is None:
                del variables["bos_token"], variables["eos_token"]
            yield f"{name}/{number}", variables


class Grammar:
    """Random templates of the subset, with random values."""

    NAMES = ["a", "b", "c", "d", "e", "missing"]
    ATTRIBUTES = ["x", "y", "role", "content", "items", "get", "0"]
    STRINGS = ["", "a", "Ab c", " x ", "é", "ΑΣ", "a<b", "x.y", "1", "-2", "3.5", "a\nb", "it's", "\"q\"", "🙂z"]

    def __init__(self, seed):
        self.r = random.Random(seed)

    def value(self, depth=0):
        r = self.r.random()
        if depth > 2 or r < 0.5:
            return self.r.choice([None, True, False, 0, 1, -1, 2, 7, 1.5, -0.5, 1e16, 1e-5, 12345678901234567890123,
                                  *self.STRINGS])
        if r < 0.75:
            return [self.value(depth + 1) for _ in range(self.r.randrange(4))]
        return {self.r.choice(["x", "y", "role", "content", "items", "B", "a"]): self.value(depth + 1)
                for _ in range(self.r.randrange(4))}

    def literal(self):
        r = self.r.randrange(8)
        if r < 4:
            text = self.r.choice(self.STRINGS)
            quoted = text.replace("\\", "\\\\").replace("\n", "\\n")
            return "'" + quoted.replace("'", "\\'") + "'" if self.r.random() < 0.7 else json.dumps(
                text, ensure_ascii=self.r.random() < 0.3) if all(ord(c) < 0xFFFF for c in text) else "'z'"
        return self.r.choice(["0", "1", "2", "-1", "3", "1.5", "2.0", "true", "false", "none", "True", "None", "1e3"])

    def expression(self, depth):
        r = self.r
        if depth <= 0 or r.random() < 0.15:
            return r.choice(self.NAMES) if r.random() < 0.6 else self.literal()
        sub = lambda: self.expression(depth - 1)  # noqa: E731
        kind = r.randrange(22)
        if kind < 2:
            return f"{sub()}.{r.choice(self.ATTRIBUTES)}"
        if kind < 4:
            return f"{sub()}[{sub()}]"
        if kind < 5:
            bound = lambda: r.choice(["", "0", "1", "-1", "2", "-2", "b"])  # noqa: E731
            # Not of literals: Jinja computes 1[2:] while it compiles, and gives an undefined value or an error.
            return f"{r.choice(self.NAMES)}[{bound()}:{bound()}{r.choice(['', ':', ':-1', ':2'])}]"
        if kind < 8:
            return f"({sub()} {r.choice(['+', '-', '*', '/', '//', '%', '~', '~', '+', '==', '!=', '<', '<=', '>'])} {sub()})"
        if kind < 9:
            return f"({sub()} {r.choice(['and', 'or', 'in', 'not in'])} {sub()})"
        if kind < 10:
            return r.choice(["not ", "-", "+"]) + f"({sub()})"
        if kind < 11:
            return f"({sub()} if {sub()}" + (f" else {sub()})" if r.random() < 0.7 else ")")
        if kind < 14:
            return f"({sub()} | {self.filter(depth)})"
        if kind < 16:
            test = r.choice(["defined", "undefined", "none", "string", "mapping", "sequence", "iterable", "number",
                             "integer", "float", "boolean", "true", "false", "odd", "even", "divisibleby 2",
                             "eq(1)", "in(a)", "lower", "upper", "equalto('a')", "gt 1"])
            return f"({sub()} is {r.choice(['', '', 'not '])}{test})"
        if kind < 18:
            return f"{sub()}.{self.method(depth)}"
        if kind < 19:
            return "[" + ", ".join(sub() for _ in range(r.randrange(3))) + "]"
        if kind < 20:
            return "{" + ", ".join(f"{self.literal()}: {sub()}" for _ in range(r.randrange(3))) + "}"
        if kind < 21:
            return "(" + ", ".join(sub() for _ in range(2)) + ")"
        return r.choice([f"range({r.randrange(4)})", f"range(1, {r.randrange(6)}, 2)", "m(1)", f"m({sub()}, q={sub()})",
                         "ns.v", "ns", f"namespace(k={sub()}).k", f"dict(k={sub()})", "loop.index", "loop.last",
                         "loop.previtem", "loop.nextitem", "loop.length", "loop.revindex", "loop.cycle(1, 2)",
                         f"loop.changed({sub()})", "loop.first", "loop.index0"])

    def filter(self, depth):
        sub = lambda: self.expression(min(depth - 1, 1))  # noqa: E731
        return self.r.choice([
            "trim", "tojson", "length", "string", "safe", "upper", "lower", "list", "int", "title", "items", "dictsort",
            "capitalize", "first", "last", "abs", "float", "reverse", "count", "join", "sort", "list|length",
            f"default({sub()})", f"default({sub()}, true)", f"d({sub()}, boolean={sub()})", f"join({sub()})",
            "join(',', attribute='x')", "map('upper')|list", "map(attribute='x')|list",
            f"map(attribute='x', default={sub()})|list", "map('trim')|join", "select|list", "reject('none')|list",
            "select('string')|list", "selectattr('x')|list", "selectattr('x', 'defined')|list",
            f"selectattr('x', 'equalto', {sub()})|list", "rejectattr('x')|list", f"reject('equalto', {sub()})|list",
            f"replace({sub()}, {sub()})", f"replace('a', 'b', {sub()})", f"trim({sub()})", "tojson(indent=2)",
            "tojson(ensure_ascii=True)", "tojson(sort_keys=True)", "tojson(separators=(',', ':'))", "tojson(indent=0)",
            "dictsort(true)", "dictsort(by='value')", "dictsort(reverse=true)", "items|list", "map('length')|list",
            f"int({sub()})", "sort(reverse=true)", "indent", "indent(2, true)", "indent('>', blank=true)",
            "map('int')|list|tojson", "sort(attribute='x')", "reverse|list"])

    def method(self, depth):
        sub = lambda: self.expression(min(depth - 1, 1))  # noqa: E731
        return self.r.choice([
            "upper()", "lower()", "strip()", "lstrip()", "rstrip()", "title()", "capitalize()", "split()", "items()",
            "keys()|list", "values()|list", "get('x')", f"get({sub()})", f"get('x', {sub()})", f"split({sub()})",
            f"split(' ', 1)", f"strip({sub()})", f"lstrip({sub()})", f"rstrip('b ')", f"startswith({sub()})",
            f"endswith({sub()})", f"replace({sub()}, {sub()})", "replace('', '-')", f"find({sub()})", f"rfind('b')",
            f"count({sub()})", f"join({sub()})", "splitlines()", "splitlines(true)", "rsplit(None, 1)", "rsplit('b', 1)",
            f"removeprefix({sub()})", f"removesuffix('c')", "copy()", "items()|list", f"index({sub()})", "split(none, 1)",
            "append(1)", "pop()", "update({})"])

    def tag(self, body):
        left, right = self.r.choice(["", "", "", "-", "+"]), self.r.choice(["", "", "", "-", "+"])
        return "{%" + left + " " + body + " " + right + "%}"

    def statements(self, depth, loops=0):
        return "".join(self.statement(depth, loops) for _ in range(self.r.randrange(1, 4)))

    def statement(self, depth, loops):
        r = self.r
        kind = r.randrange(14) if depth > 0 else r.randrange(5)
        name = r.choice(self.NAMES)
        if kind < 1:
            return r.choice([" ", "\n", "text", " \n  ", "é\n", "{# c #}", "\n  {#- c -#}\n", "{% raw %}{{ x }}{% endraw %}",
                             "  {%- raw -%} y {%- endraw %}\n", "\t", "a {", "}"])
        if kind < 4:
            return r.choice(["{{ ", "{{- "]) + self.expression(r.choice([1, 2, 2, 3])) + r.choice([" }}", " -}}"])
        if kind < 6:
            return self.tag(f"set {name} = {self.expression(2)}")
        if kind < 7:
            return r.choice([self.tag(f"set ns.v = {self.expression(2)}"),
                             self.tag(f"set {name}, b = {self.expression(2)}, {self.expression(1)}")])
        if kind < 9:
            text = self.tag(f"if {self.expression(2)}") + self.statements(depth - 1, loops)
            if r.random() < 0.4:
                text += self.tag(f"elif {self.expression(2)}") + self.statements(depth - 1, loops)
            if r.random() < 0.5:
                text += self.tag("else") + self.statements(depth - 1, loops)
            return text + self.tag("endif")
        if kind < 11:
            target = name if r.random() < 0.7 else f"{name}, e"
            over = r.choice(["a", "b", "[1, 2, 3]", "range(3)", "'xyz'", "{'x': 1, 'y': 2}.items()", self.expression(2),
                             "[[1, 2], [3, 4]]", "[{'x': 1}, {'x': 2}]"])
            test = f" if {self.expression(2)}" if r.random() < 0.25 else ""
            text = self.tag(f"for {target} in {over}{test}") + self.statements(depth - 1, loops + 1)
            if r.random() < 0.25:
                text += self.tag("if " + self.expression(1)) + self.tag(r.choice(["break", "continue"])) + self.tag("endif")
                text += self.statements(0, loops)
            if r.random() < 0.3:
                text += self.tag("else") + self.statements(depth - 1, loops)
            return text + self.tag("endfor")
        if kind < 12:
            pipe = r.choice(["", "", " | trim", " | upper"])
            return self.tag(f"set {name}{pipe}") + self.statements(depth - 1) + self.tag("endset")
        if kind < 13:
            return self.tag("generation") + self.statements(depth - 1) + self.tag("endgeneration")
        return (self.tag(f"macro {r.choice(['m', 'm', name])}({r.choice(['p', 'p, q=2', 'a', 'p, q=p'])})")
                + self.statements(depth - 1) + self.tag("endmacro"))

    def template(self):
        start = "{% set ns = namespace(v=1) %}" if self.r.random() < 0.7 else ""
        if self.r.random() < 0.4:
            start += "{% macro m(p, q='d') %}[{{ p }}{{ q }}{{ a }}]{% endmacro %}"
        return start + self.statements(self.r.choice([1, 1, 2, 3])), {name: self.value() for name in self.NAMES[:-1]}


# Messages of refusals of what is outside of the subset.
OUTSIDE = ("is not supported", "are not supported", "does not fit 64 bits", "cannot be printed", "positional argument")


def compare(want, got, source=""):
    """An empty text if they agree, 'outside' if the template is outside of the subset, else what differs."""
    if "error" in got and any(text in got["error"] for text in OUTSIDE):
        return "outside"
    if "error" in want or "error" in got:
        return "" if "error" in want and "error" in got else "only one of them fails"
    if want["text"] != got["text"]:
        return "text"
    size = len(got["text"].encode())
    if any(end > size for _, end in got["spans"]):
        return ""  # a span in a capture, whose text was dropped
    if not want["text"].isascii() and ("endset" in source or "endmacro" in source or source.count("generation") > 2):
        # A span in a capture counts characters of a text that the output need not have at that place.
        return "" if len(want["spans"]) == len(got["spans"]) else "spans"
    return "" if want["spans"] == got["spans"] else "spans"


class Program:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        encoding="utf-8")

    def render(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"chat_render ended: {json.dumps(request)}")
        return json.loads(line)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--program", required=True)
    options.add_argument("--templates", action="append", default=[], type=pathlib.Path)
    options.add_argument("--fuzz", type=int, default=20000)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    program = Program(given.program)
    shown = failed = 0

    def differs(what, where, request, want, got):
        nonlocal shown, failed
        failed += 1
        if shown < 8:
            shown += 1
            print(f"DIFFERS ({what}): {where}\n  {json.dumps(request, ensure_ascii=False)[-700:]}\n  want {want}\n  got  {got}"[:1200])

    paths = sorted(path for folder in given.templates for path in folder.rglob("*.jinja"))
    cases = rendered = 0
    for path in paths:
        source = path.read_text()
        for name, variables in conversations():
            request = {"path": str(path), "variables": variables}
            want, got = expected(source, variables), program.render(request)
            cases += 1
            rendered += "text" in want
            if (what := compare(want, got)) != "":
                differs(what, f"{path.name} {name}", {}, want, got)
    print(f"{len(paths)} templates, {cases} cases, {rendered} of them rendered: {failed} differ")

    counts = {"": 0, "outside": 0}
    texts = fuzz_failed = 0
    for number in range(given.fuzz):
        source, variables = Grammar(given.seed * 1_000_000_007 + number).template()
        want = expected(source, variables)
        got = program.render({"template": source, "variables": variables})
        what = compare(want, got, source)
        if what in counts:
            counts[what] += 1
            texts += what == "" and "text" in want
        else:
            fuzz_failed += 1
            differs(what, f"random template {number}", {"template": source, "variables": variables}, want, got)
    print(f"{given.fuzz} random templates: {counts['']} agree ({texts} of them render), {counts['outside']} are outside "
          f"of the subset, {fuzz_failed} differ")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
