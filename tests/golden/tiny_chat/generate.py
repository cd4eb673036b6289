#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the files of this folder with transformers and tokenizers. Exits with 77 if they are not installed.

usage: generate.py [--check]

  --check  compare with the files that are there, and write nothing
"""
import json
import pathlib
import struct
import sys
import tempfile

try:
    import jinja2  # noqa: F401
    import tokenizers
    from transformers import PreTrainedTokenizerFast
except ImportError as missing:
    print(f"skipped: needs transformers and tokenizers, {missing}")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "sidecars"))
from sidecar_formats import encode_mask  # noqa: E402

SPECIAL = ["<|im_start|>", "<|im_end|>"]
# In the manner of ChatML. Only what the assistant says and its end are trained.
TEMPLATE = """{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.role == 'assistant' %}{% generation %}{{ message.content + '<|im_end|>' }}{% endgeneration %}
{%- else %}{{ message.content + '<|im_end|>' }}{% endif %}
{{- '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}
"""


def tokenizer_json():
    made = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(
        str(HERE.parent / "tiny_bpe/vocab.json"), str(HERE.parent / "tiny_bpe/merges.txt")))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.add_special_tokens(SPECIAL)
    return made.to_str(pretty=True) + "\n"


def files():
    """Pairs of a name and the content."""
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": SPECIAL[1], "chat_template": TEMPLATE}
    texts = {"tokenizer.json": tokenizer_json(),
             "tokenizer_config.json": json.dumps(config, indent=2) + "\n"}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            (pathlib.Path(folder) / name).write_text(text)
        tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    ids, mask = [], []
    for line in (HERE / "conversations.jsonl").open():
        both = tokenizer.apply_chat_template(json.loads(line)["messages"], tokenize=True, return_dict=True,
                                             return_assistant_tokens_mask=True)
        ids += both["input_ids"]
        mask += both["assistant_masks"]
    yield from ((name, text.encode()) for name, text in texts.items())
    yield "conversations.bin", struct.pack(f"<{len(ids)}H", *ids)
    yield "conversations.mask", encode_mask(mask)


def main():
    check = sys.argv[1:] == ["--check"]
    for name, content in files():
        if not check:
            (HERE / name).write_bytes(content)
        elif (HERE / name).read_bytes() != content:
            sys.exit(f"{name} is not what transformers makes")


if __name__ == "__main__":
    main()
