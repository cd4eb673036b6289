#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our SentencePiece ids and texts with those of the package `sentencepiece`.

usage: sentencepiece_against_reference.py --driver D [--model F ...] [--models N] [--cases N] [--seed S]

The driver is the program of tests/support/sentencepiece_lines.cpp. Without files, the script trains N small models on
random text with random options, and edits their types, scores and flags at random. Each model gets --cases adversarial
texts, and as many lists of ids to decode. The seed is printed; the same seed gives the same models and texts.
Exits 1 on a difference, and 77 if the package is missing or older than 0.2.2, which breaks ties differently.
"""
import argparse
import io
import random
import re
import struct
import subprocess
import sys
import tempfile

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
SPACE = "\u2581"
# All kinds of spaces, characters that normalization joins, widens, decomposes or drops, and some
# that no model has.
ODD = [chr(c) for c in (
    0x00, 0x01, 0x09, 0x0A, 0x0D, 0x1F, 0x7F, 0x85, 0xA0, 0xAD, 0xC5, 0xDF, 0xE9, 0x130, 0x131, 0x1C4, 0x300, 0x301,
    0x308, 0x323, 0x3C2, 0x3C3, 0x401, 0x410, 0x430, 0x5D0, 0x627, 0x64B, 0x915, 0x93C, 0xE33, 0x1100, 0x1161, 0x11A8,
    0x1E9B, 0x2002, 0x200B, 0x200D, 0x2028, 0x2047, 0x2126, 0x212B, 0x2160, 0x2460, 0x2581, 0x2582, 0x3000, 0x3042,
    0x304B, 0x3099, 0x30AB, 0x30FC, 0x3231, 0x33C2, 0x4E00, 0x4E8C, 0xAC00, 0xAC01, 0xFB01, 0xFDFA, 0xFEFF, 0xFF21,
    0xFF76, 0xFF9E, 0xFFFD, 0xFFFF, 0x10000, 0x1D400, 0x1F600, 0x20000, 0x10FFFF)]


def any_point(rng):
    while True:
        point = rng.choice((rng.randrange(0x80), rng.randrange(0x800), rng.randrange(0x3400), rng.randrange(0x10000),
                            rng.randrange(0x110000)))
        if not 0xD800 <= point < 0xE000:  # surrogates are not valid text
            return chr(point)


def alphabet_of(rng):
    letters = list(rng.choice(("ab", "abcd", "abcdefgh", "etaoin shrdlu", "01ab", "aAbB", "アイウか", "абвг", "aé́b")))
    return letters + rng.sample(ODD, rng.randrange(0, 6)) + [" "] * rng.randrange(1, 4)


def text_of(rng, alphabet, spelled):
    """A random text. `spelled`: texts of pieces, some of which it contains whole."""
    kind = rng.randrange(24)
    if kind == 0:
        return rng.choice(alphabet + spelled) * rng.randrange(1, rng.choice((120, 120, 2000)))
    if kind == 1:  # no spaces: long fragments
        few = [c for c in alphabet if c != " "] or ["a"]
        return "".join(rng.choice(few) for _ in range(rng.randrange(1, rng.choice((300, 300, 3000)))))
    if kind == 2:
        return " " * rng.randrange(0, 40) + rng.choice(spelled) + rng.choice(("", " ", "  ", "\n", SPACE))
    if kind == 3:  # a long line: sums of many scores
        return " ".join(rng.choice(spelled) for _ in range(rng.randrange(1, 400)))
    if kind == 4:  # indented words
        return "".join(" " * rng.randrange(9) + (rng.choice(spelled) if rng.random() < 0.5 else
                                                 "".join(rng.choice(alphabet) for _ in range(rng.randrange(1, 9))))
                       for _ in range(rng.randrange(1, 30)))
    parts = []
    for _ in range(rng.randrange(0, 40)):
        draw = rng.random()
        parts.append(rng.choice(alphabet) if draw < 0.6 else rng.choice(spelled) if draw < 0.8 else
                     rng.choice(ODD) if draw < 0.9 else rng.choice((" ", "  ", SPACE, "\n", "\t")) if draw < 0.97 else
                     any_point(rng))
    return "".join(parts)


def train(rng, sentencepiece):
    """A serialized model of random text and options; None if the trainer rejects them."""
    alphabet = alphabet_of(rng)
    words = ["".join(rng.choice(alphabet) for _ in range(rng.randrange(1, 8))) for _ in range(rng.randrange(5, 80))]
    lines = [" ".join(rng.choice(words) for _ in range(rng.randrange(1, 12))) for _ in range(rng.randrange(20, 120))]
    byte_fallback = rng.random() < 0.5
    symbols = set()
    for _ in range(rng.choice((0, 0, 1, 2, 6))):
        symbols.add(rng.choice((rng.choice(words), rng.choice(words)[:2], "<x>", "  ", " a", "a" + SPACE, SPACE + "b", "\n",
                                "\t" + SPACE, rng.choice(words) + " " + rng.choice(words))))
    written = io.BytesIO()
    options = dict(
        sentence_iterator=iter(lines), model_writer=written, model_type=rng.choice(("bpe", "bpe", "unigram")),
        vocab_size=rng.randrange(20, 160) + 256 * byte_fallback, hard_vocab_limit=False, byte_fallback=byte_fallback,
        add_dummy_prefix=rng.random() < 0.6, remove_extra_whitespaces=rng.random() < 0.5,
        treat_whitespace_as_suffix=rng.random() < 0.2, split_by_whitespace=rng.random() < 0.7,
        allow_whitespace_only_pieces=rng.random() < 0.5, split_digits=rng.random() < 0.3,
        split_by_unicode_script=rng.random() < 0.5, split_by_number=rng.random() < 0.5,
        character_coverage=rng.choice((0.98, 0.99, 1.0)), user_defined_symbols=sorted(symbols - {""}),
        control_symbols=rng.choice(([], ["<c>"], ["<c>", "a<c>"])),
        normalization_rule_name=rng.choice(("identity", "identity", "nmt_nfkc", "nmt_nfkc_cf", "nfkc", "nfkc_cf")),
        eos_id=rng.choice((2, 2, -1)), num_threads=1, minloglevel=3, train_extremely_large_corpus=False)
    try:
        sentencepiece.SentencePieceTrainer.train(**options)
    except RuntimeError:
        return None
    return written.getvalue()


def edit(rng, data, proto_class):
    proto = proto_class()
    proto.ParseFromString(data)
    plain = [p for p in proto.pieces if p.type == NORMAL]
    if rng.random() < 0.3 and plain:  # equal scores, also among other pieces, and both zeros
        values = [rng.choice((-1.0, -2.0, -2.5, 0.0, -0.0, 1.0)) for _ in range(rng.randrange(1, 4))]
        for piece in plain:
            if rng.random() < 0.7:
                piece.score = rng.choice(values)
    if rng.random() < 0.2 and plain:  # scores beyond the threshold of SentencePiece's sums
        factor = rng.choice((-1.0, 50.0, 3000.0, 90000.0))
        for piece in plain:
            piece.score *= factor
    if rng.random() < 0.3 and plain:  # paths that differ by less than the rounding of a long line's sum
        scores = {p.piece: p.score for p in plain}
        for piece in plain:
            at = rng.randrange(1, len(piece.piece)) if len(piece.piece) > 1 else 0
            if at and piece.piece[:at] in scores and piece.piece[at:] in scores:
                piece.score = (scores[piece.piece[:at]] + scores[piece.piece[at:]]
                               + rng.choice((-1, 1)) * 10 ** rng.uniform(-8, -1))
                scores[piece.piece] = piece.score
    if rng.random() < 0.2 and plain:  # runs of spaces that merge after everything else, as Llama 2's do, or nearly so
        proto.normalizer_spec.remove_extra_whitespaces = False
        mixed = [p for p in plain if SPACE * 2 in p.piece]
        for piece in mixed if rng.random() < 0.9 else mixed[1:]:
            piece.type = CONTROL
        score = min(p.score for p in plain) - rng.choice((1e9, 1.0, 1.0, -0.5))
        known = {p.piece for p in proto.pieces}
        for size in [2] + rng.sample(range(3, 17), rng.randrange(15)):
            if SPACE * size not in known:
                proto.pieces.add(piece=SPACE * size, score=score, type=NORMAL)
                score -= rng.choice((0, 0, 0, 0, 0, 0, 0, 1))
        plain = [p for p in plain if p.type == NORMAL]
    if rng.random() < 0.3 and plain:
        share = rng.random() * 0.6
        for piece in plain:
            if rng.random() < share:
                piece.type = UNUSED
    if rng.random() < 0.2 and plain:
        for piece in rng.sample(plain, min(len(plain), rng.randrange(1, 5))):
            piece.type = rng.choice((USER_DEFINED, USER_DEFINED, CONTROL))
    if rng.random() < 0.3:
        spec = proto.normalizer_spec
        spec.add_dummy_prefix = rng.random() < 0.5
        spec.remove_extra_whitespaces = rng.random() < 0.5
        spec.escape_whitespaces = rng.random() < 0.7
    if rng.random() < 0.3:
        proto.trainer_spec.unk_surface = rng.choice(("", "?", SPACE, "\u2047"))
    if rng.random() < 0.1:
        proto.denormalizer_spec.CopyFrom(proto.normalizer_spec)
    return proto.SerializeToString()


def run(driver, model, mode, requests):
    """Sends all requests and returns the answers. Each is a count and its bytes; ids have four bytes each."""
    width = (1, 4) if mode.startswith("encode") else (4, 1)
    sent = b"".join(struct.pack("<I", len(r) // width[0]) + r for r in requests)
    got = subprocess.run([driver, model, mode], input=sent, stdout=subprocess.PIPE, check=True).stdout
    answers, at = [], 0
    for _ in requests:
        (count,) = struct.unpack_from("<I", got, at)
        answers.append(got[at + 4:at + 4 + count * width[1]])
        at += 4 + count * width[1]
    assert at == len(got), "the driver answered more than the requests"
    return answers


def packed(ids):
    return struct.pack(f"<{len(ids)}I", *ids)


def encode_with_extra_spaces(processor, text):
    """What Megatron's wrapper does if it must not ignore extra white space."""
    if processor.encode_as_pieces("x  y") != processor.encode_as_pieces("x y"):
        return processor.encode_as_ids(text)
    ids = []
    for part in re.sub(r"(?<= )(?= )|^ | $", " \u262f ", text).rstrip().split("\u262f"):
        if part:
            ids += processor.encode_as_ids(part + "\u262f")[:-1]
    return ids


def compare(rng, driver, path, processor, cases):
    """Prints some of the differences and returns their number."""
    size = processor.get_piece_size()
    spelled = [processor.id_to_piece(i) for i in rng.sample(range(size), min(size, 200))]
    spelled = [s.replace(SPACE, rng.choice((" ", " ", SPACE))) for s in spelled]
    alphabet = alphabet_of(rng) + [c for s in rng.sample(spelled, min(len(spelled), 8)) for c in s]
    texts = [text_of(rng, alphabet, spelled) for _ in range(cases)]
    expected = [processor.encode(t) for t in texts]
    with_spaces = texts[::8]
    differences = 0
    for mode, asked, answers in (("encode", texts, expected), (
            "encode-extra", with_spaces, [encode_with_extra_spaces(processor, t) for t in with_spaces])):
        for text, wanted, found in zip(asked, answers, run(driver, path, mode, [t.encode() for t in asked])):
            if packed(wanted) != found:
                differences += 1
                if differences <= 3:
                    print(f"{mode} {text!a}\n  expected {wanted}\n  found    "
                          f"{list(struct.unpack(f'<{len(found) // 4}I', found))}")
    lists = [ids if rng.random() < 0.5 else [rng.randrange(size) for _ in range(rng.randrange(12))] for ids in expected]
    for ids, found in zip(lists, run(driver, path, "decode", [packed(ids) for ids in lists])):
        wanted = processor.decode(ids)
        if wanted.encode() != found:
            differences += 1
            if differences <= 3:
                print(f"ids {ids}\n  expected {wanted!a}\n  found    {found!a}")
    return differences


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--models", type=int, default=40)
    parser.add_argument("--cases", type=int, default=300, help="texts for each model")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="where to leave a model that differs")
    options = parser.parse_args()
    try:
        import sentencepiece
        from sentencepiece import sentencepiece_model_pb2
        if tuple(int(n) for n in sentencepiece.__version__.split(".")[:3]) < (0, 2, 2):
            raise ImportError("too old")
    except ImportError as why:
        print(f"skipped: needs the Python packages sentencepiece (0.2.2 or later) and protobuf: {why}")
        sys.exit(77)

    print(f"seed {options.seed}")
    rng = random.Random(options.seed)
    done = differences = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(len(options.model) or options.models):
            if options.model:
                path = options.model[number]
            else:
                trained = train(rng, sentencepiece)
                if trained is None:
                    continue
                path = f"{folder}/{number}.model"
                with open(path, "wb") as file:
                    file.write(edit(rng, trained, sentencepiece_model_pb2.ModelProto) if rng.random() < 0.7 else trained)
            try:
                processor = sentencepiece.SentencePieceProcessor(model_file=path)
            except RuntimeError:  # the edit made the model invalid
                continue
            found = compare(rng, options.driver, path, processor, options.cases)
            if found and options.keep:
                with open(path, "rb") as source, open(f"{options.keep}/{options.seed}.{number}.model", "wb") as copy:
                    copy.write(source.read())
            if found:
                print(f"model {number}: {found} differences")
            differences += found
            done += 1
    print(f"{done} models, {done * options.cases} texts, {differences} differences")
    sys.exit(1 if differences or not done else 0)


if __name__ == "__main__":
    main()
