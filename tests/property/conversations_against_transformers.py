#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares ids and masks of `preprocess_data --messages-key` with those that transformers gives.

usage: conversations_against_transformers.py --program PREPROCESS_DATA [--templates FOLDER]... [--tokenizers FOLDER]
           [--records N] [--rounds N] [--seed N]

  --templates   a folder of .jinja files, e.g. of an unpacked package of trl or axolotl
  --tokenizers  a folder whose NAME/tokenizer.json are used beside a small tokenizer that is trained here
  --records     conversations per tokenizer and template (default: 60)
  --rounds      sets of flags per tokenizer and template (default: 4)

Templates with generation blocks have the mask of transformers. For the others, a naive model renders the conversation
message by message. Exits with 77 if transformers or tokenizers is not installed.
"""
import argparse
import array
import datetime
import json
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

try:
    import jinja2  # noqa: F401
    import tokenizers
    from transformers import PreTrainedTokenizerFast
    from transformers.utils import chat_template_utils
except ImportError as missing:
    print(f"skipped: needs transformers and tokenizers, {missing}")
    sys.exit(77)



class FixedDate(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.datetime(2026, 3, 14)


chat_template_utils.datetime = FixedDate
HAS_GENERATION = re.compile(r"{%-?\s*generation\b")
SPECIAL = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>",
           "<pad>"]
NAMED = {"bos_token": "<s>", "eos_token": "<|im_end|>", "pad_token": "<pad>"}
TEMPLATES = {
    "chatml": "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + (m['content'] or '') + '<|im_end|>\n' }}"
              "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "headers": "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n"
               "{{ m.content | trim }}{% if m.tool_calls %}{% for c in m.tool_calls %}{{ c.function | tojson }}"
               "{% endfor %}{% endif %}<|eot_id|>{% endfor %}",
    "generation": "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}{% if m.role == 'assistant' %}"
                  "{% generation %}{{ m.content }}{{ eos_token }}{% endgeneration %}{% else %}{{ m.content }}"
                  "<|im_end|>{% endif %}\n{% endfor %}",
    "refusing": "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
                "{% for m in messages %}[{{ m.content }}]{% if m.role == 'assistant' %}{{ eos_token }}{% endif %}"
                "{% endfor %}",
    "looks ahead": "{% for m in messages %}{{ m.content }}{% if loop.last %}</s>{% else %}<|im_end|>{% endif %}"
                   "{% endfor %}",
    "tools": "{% if tools %}{{ tools | tojson(indent=2) }}\n{% endif %}{% for m in messages %}<|im_start|>"
             "{{ m.content }}<|im_end|>{% endfor %}",
}
TEXTS = ["Hello", " spaces around ", "日本語のテキスト", "é\u0301 ﬁ", "😀 a\tb", "line\nline\n", "<b>&amp;</b>",
         "1234567", "<|im_end|> inside", "ÄÖÜ ß", "a", "the quick brown fox jumps over the lazy dog " * 3, "\u00a0x"]
TOOL = {"type": "function", "function": {"name": "weather", "description": "of <a> place", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}}}}


def small_tokenizer():
    """A tokenizer of words and bytes, trained on the texts above."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=500, special_tokens=SPECIAL, show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    made.train_from_iterator(TEXTS * 20, trainer)
    return made.to_str()


def message(rng, role):
    out = {"role": role, "content": " ".join(rng.choice(TEXTS) for _ in range(rng.randint(1, 3)))}
    if role == "assistant" and rng.random() < 0.15:
        out["tool_calls"] = [{"type": "function", "function": {"name": "weather", "arguments": {"city": "Zürich"}}}]
    return out


def record(rng):
    """A conversation, in one of the schemas that the program knows, and its messages."""
    messages = [message(rng, "system")] if rng.random() < 0.3 else []
    for _ in range(rng.randint(1, 4)):
        messages += [message(rng, "user"), message(rng, "assistant")]
    if rng.random() < 0.2:
        messages.append(message(rng, "user"))
    if rng.random() < 0.05:
        messages = [m for m in messages if m["role"] != "assistant"]
    tools = [TOOL] if rng.random() < 0.3 else None
    with_tools = {"tools": json.dumps(tools) if tools and rng.random() < 0.5 else tools} if tools else {}
    kind = rng.random()
    if kind < 0.15 and not any("tool_calls" in m for m in messages):
        names = {"user": "human", "assistant": "gpt"}
        line = {"messages": [{"from": names.get(m["role"], m["role"]), "value": m["content"]} for m in messages]}
    elif kind < 0.25:
        messages = [{"role": "user", "content": rng.choice(TEXTS)}, {"role": "assistant", "content": rng.choice(TEXTS)}]
        line = {"prompt": messages[0]["content"], "completion": messages[1]["content"]}
    elif kind < 0.35:
        given = rng.choice(["", "some input"])
        messages = [{"role": "user", "content": "Do this" + ("\n\n" + given if given else "")},
                    {"role": "assistant", "content": rng.choice(TEXTS)}]
        line = {"instruction": "Do this", "input": given, "output": messages[1]["content"]}
    else:
        line = {"messages": messages}
    return {**line, **with_tools}, messages, tools


def overlap(offsets, spans):
    mask = [0] * len(offsets)
    for begin, end in spans:
        hit = [i for i, (b, e) in enumerate(offsets) if b < e and b < end and e > begin]
        for i in range(hit[0], hit[-1] + 1) if hit else []:
            mask[i] = 1
    return mask


def end_mark(turn):
    """Where the last special token of a turn begins, if only white space follows."""
    hits = [(turn.rfind(token) + len(token), turn.rfind(token)) for token in SPECIAL if token in turn]
    if not hits:
        return len(turn)
    end, begin = max(hits, key=lambda hit: (hit[0], -hit[1]))
    return begin if not turn[end:].strip(" \t\r\n\v\f") else len(turn)


def expected(tokenizer, messages, tools, has_generation, flags):
    """Ids and mask, or None if the record must be refused."""
    def render(count):
        return tokenizer.apply_chat_template(messages[:count], tools=tools, tokenize=False)
    try:
        text = render(len(messages))
    except Exception:  # noqa: BLE001: any failure counts
        return None
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    ids, offsets = encoded["input_ids"], encoded["offset_mapping"]
    if flags["turns"] == "all":
        return (ids, [1] * len(ids)) if ids else None
    if has_generation and flags["turns"] == "assistant" and flags["eot"] == "turn":
        both = tokenizer.apply_chat_template(messages, tools=tools, tokenize=True, return_dict=True,
                                             return_assistant_tokens_mask=True)
        if both["input_ids"] != ids:
            raise SystemExit(f"transformers disagrees with itself about {messages}")
        mask = both["assistant_masks"]
        return (ids, mask) if any(mask) else None
    if has_generation:
        return ...  # transformers cannot say
    spans = []
    for i, each in enumerate(messages):
        if each["role"] != "assistant":
            continue
        try:
            before, after = render(i) if i else "", render(i + 1)
        except Exception:  # noqa: BLE001
            return None
        if not text.startswith(before) or not text.startswith(after):
            return None
        spans.append((len(before), len(after)))
    if flags["turns"] == "last":
        spans = spans[-1:]
    if flags["eot"] == "none" or flags["eot"] == "last":
        kept = spans[-1:] if flags["eot"] == "last" else []
        spans = [(b, e) if (b, e) in kept else (b, b + end_mark(text[b:e])) for b, e in spans]
    mask = overlap(offsets, spans)
    return (ids, mask) if any(mask) else None


def read_dataset(prefix):
    """The ids and masks of the documents, and the numbers of the bad lines."""
    idx = pathlib.Path(f"{prefix}.idx").read_bytes()
    code, sequences = struct.unpack_from("<BQ", idx, 17)
    lengths = struct.unpack_from(f"<{sequences}i", idx, 34)
    ids = array.array({8: "H", 4: "i"}[code], pathlib.Path(f"{prefix}.bin").read_bytes())
    bits = pathlib.Path(f"{prefix}.mask").read_bytes()[32:]
    documents, at = [], 0
    for length in lengths:
        documents.append((list(ids[at:at + length]), [bits[t // 8] >> t % 8 & 1 for t in range(at, at + length)]))
        at += length
    bad = pathlib.Path(f"{prefix}.bad")
    lines = [json.loads(line)["line"] for line in bad.open()] if bad.exists() else []
    return documents, set(lines)


def difference(want, got):
    if want is None or got is None:
        return f"expected {'a refusal' if want is None else 'a document'}"
    for kind, a, b in zip(("ids", "mask"), want, got):
        if a != b:
            at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            return f"{kind} differ at token {at}: expected {a[at:at + 20]}, found {b[at:at + 20]}"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--templates", action="append", default=[])
    parser.add_argument("--tokenizers")
    parser.add_argument("--records", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    templates = dict(TEMPLATES)
    for folder in options.templates:
        for path in sorted(pathlib.Path(folder).rglob("*.jinja")):
            templates[str(path)] = path.read_text()
    files = {"small": small_tokenizer()}
    if options.tokenizers:
        for path in sorted(pathlib.Path(options.tokenizers).glob("*/tokenizer.json")):
            files[path.parent.name] = path.read_text()
    records = documents = refused = unknown = 0
    for name, text in files.items():
        for template_name, source in templates.items():
            with tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                (folder / "tokenizer.json").write_text(text)
                tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), **NAMED)
                tokenizer.add_special_tokens({"additional_special_tokens": SPECIAL})
                tokenizer.chat_template = source
                tokenizer.save_pretrained(folder / "saved")
                for number in range(options.rounds):
                    flags = {"turns": rng.choice(["assistant", "assistant", "last", "all"]),
                             "eot": rng.choice(["turn", "turn", "last", "none"])}
                    parts = "" if flags["turns"] == "all" else ",reasoning,tool_calls"
                    cases = [record(rng) for _ in range(options.records)]
                    (folder / "in.jsonl").write_text("".join(json.dumps(case[0], ensure_ascii=rng.random() < 0.5) + "\n"
                                                             for case in cases))
                    wanted = [expected(tokenizer, messages, tools, HAS_GENERATION.search(source) is not None, flags)
                              for _, messages, tools in cases]
                    run = subprocess.run(
                        [options.program, "--input", folder / "in.jsonl", "--output-prefix", folder / f"out{number}",
                         "--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", folder / "saved",
                         "--messages-key", "messages", "--train-on", flags["turns"] + parts, "--train-on-eot",
                         flags["eot"], "--on-bad-record", "quarantine", "--template-date", "2026-03-14"],
                        capture_output=True, text=True)
                    where = f"{name}, {template_name}, {flags}, seed {options.seed}"
                    if run.returncode != 0 and "every record is bad" in run.stderr:
                        found, bad = [], set(range(1, len(cases) + 1))
                    elif run.returncode != 0:
                        sys.exit(f"{where}: {run.stderr}")
                    else:
                        found, bad = read_dataset(folder / f"out{number}_messages_document")
                    found = iter(found)
                    for line, ((record_, _, _), want) in enumerate(zip(cases, wanted), 1):
                        records += 1
                        got = None if line in bad else next(found)
                        if want is ...:
                            unknown += 1
                        elif got != want:
                            sys.exit(f"{where}, record {line}: {json.dumps(record_)}\n{difference(want, got)}")
                        documents += got is not None
                        refused += got is None
    print(f"{records} conversations, {len(files)} tokenizers, {len(templates)} templates: {documents} documents and "
          f"{refused} refused, none differs; {unknown} that transformers cannot tell")
    if documents < records // 4 or refused == 0:
        sys.exit("too few documents or refusals to prove anything")


if __name__ == "__main__":
    main()
