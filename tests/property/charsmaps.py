# SPDX-License-Identifier: Apache-2.0
"""Charsmaps, as in SentencePiece models and in the normalizer Precompiled of a tokenizer.json.

Maps of random rules, and those of SentencePiece if its package is installed.
"""
import base64
import functools
import json
import re
import struct


def double_array(rules):
    """A double array in the layout of darts-clone, from the bytes of each rule to a number."""
    root = {}
    for key, value in rules.items():
        node = root
        for byte in key:
            node = node.setdefault(byte, {})
        node[None] = value
    units, bases, free = {0: 0}, set(), 1
    unplaced = [(0, root)]
    while unplaced:
        at, node = unplaced.pop()
        while free in units:
            free += 1
        labels = [label or 0 for label in node]
        base = free ^ labels[0]
        while base in bases or base == at or any(base ^ label in units for label in labels):
            base += 1
        bases.add(base)
        distance = at ^ base
        assert distance < 1 << 21
        units[at] |= distance << 10 | (None in node) << 8
        for label, child in node.items():
            units[base ^ (label or 0)] = 1 << 31 | child if label is None else label
            if label is not None:
                unplaced.append((base ^ label, child))
    end = (max(max(units), max(bases) | 0xFF) | 0xFF) + 1
    return struct.pack(f"<{end}I", *(units.get(i, 0) for i in range(end)))


def from_rules(rules):
    """A charsmap of the rules {text: replacement}."""
    places, replacements = {}, b""
    for text, replacement in rules.items():
        places[text.encode()] = len(replacements)
        replacements += replacement.encode() + b"\0"
    trie = double_array(places)
    return struct.pack("<I", len(trie)) + trie + replacements


def random_rules(rng, characters):
    """Rules for single characters, for some with what follows them, and for beginnings of others."""
    rules = {}
    for _ in range(rng.choice((1, 3, 10, 60))):
        size = rng.choice((1, 1, 1, 2, 2, 3))
        text = "".join(rng.choice(characters) for _ in range(size)).replace("\0", "")
        made = "".join(rng.choice(characters) for _ in range(rng.choice((0, 1, 1, 2, 4)))).replace("\0", "")
        if text:
            rules[text] = rng.choice((made, made, " ", ""))
    return rules or {"a": "b"}


def random_map(rng, characters):
    return from_rules(random_rules(rng, characters))


def fields(message):
    """(number, value) of the fields of a protobuf message: integers, and the bytes of anything else."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
            continue
        size = varint() if tag & 7 == 2 else 8 if tag & 7 == 1 else 4
        yield tag >> 3, message[at:at + size]
        at += size


def in_model(model):
    """The charsmap of a serialized SentencePiece model, b"" if it has none."""
    for number, spec in fields(model):
        if number == 3:
            return dict(fields(spec)).get(2, b"")
    return b""


@functools.cache
def of_sentencepiece():
    """{name: charsmap} of the rules that SentencePiece knows by name; empty without its package."""
    try:
        from sentencepiece import SentencePieceNormalizer
    except ImportError:
        return {}
    return {name: in_model(SentencePieceNormalizer(rule_name=name).serialized_model_proto())
            for name in ("nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf")}


def component(charsmap):
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()}


def shown(components):
    """As JSON, charsmaps as their size."""
    return re.sub(r"[A-Za-z0-9+/=]{200,}", lambda found: f"(a charsmap of {len(found[0])} digits)",
                  json.dumps(components))
