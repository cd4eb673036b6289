#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares how we open folders of `transformers` with how two of its releases open them.

usage: folders_against_transformers.py --driver D --other PYTHON [--folders N] [--seed S] [--verbose]

A folder has a random tokenizer.json (from hugging_face_against_reference.py) and other files, which this script writes or
one of the releases saves. AutoTokenizer opens the folder, and then the script does what Megatron does. This Python has one
release, the given Python the other. If both agree on ids, vocabulary size and eod, we must agree or refuse the folder; if
they differ, we must agree with one of them or refuse the folder. The driver is the program of
tests/support/hugging_face_lines.cpp. Exits 1 on a difference, or if all three agree on fewer than a tenth of the folders,
and 77 if a release is missing.

Without special tokens, Megatron looks up the spelling of each token again. If an added token included spaces, that spelling
is not the one of its id: such texts are counted, and compared with the ids themselves.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

from hugging_face_against_reference import REFUSED, ask_driver, text_of, tokenizer_of

TEXTS = 12
NAMES = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"]
# The classes of folder_class.cpp, some that are refused, and some unknown ones.
STEMS = """Bert ConvBert DPRContextEncoder DPRQuestionEncoder DPRReader DistilBert Electra LayoutLM LayoutLMv2 Lxmert MobileBert Realm
    RetriBert Splinter SqueezeBert Deberta DebertaV2 Albert RemBert FNet BigBird Bart Barthez Blenderbot Camembert LED LayoutLMv3
    LayoutXLM Longformer MarkupLM Mvp Roberta XLMRoberta MPNet Funnel XLNet T5 Udop Pegasus Reformer OpenAIGPT Llama
    CodeLlama Bloom Gemma Cohere CLIP GPT2 CodeGen GPTNeoX Qwen2
    MBart Nllb Whisper RoFormer Herbert Nougat XGLM MT5 Qwen3_5 Esmc""".split()
CLASSES = ["PreTrainedTokenizerFast"] * 12 + [stem + "Tokenizer" + ending for stem in STEMS for ending in ("", "Fast")]
MODEL_TYPES = """albert yoso bart bert ernie megatron-bert nezha qdqbert big_bird clip camembert codegen phi code_llama cohere cohere2 convbert
    deberta deberta-v2 distilbert electra funnel dbrx gpt2 gpt_neo gptj opt starcoder2 falcon_mamba gpt_neox mamba mamba2 mpt olmo olmoe
    rwkv gemma gemma2 gemma3 gemma3_text recurrent_gemma t5gemma led longformer mpnet mobilebert pegasus glm glm4 glm4_moe modernbert
    nemotron qwen2 qwen2_5_vl qwen2_moe qwen2_vl qwen3 qwen3_moe qwen3_next rembert data2vec-text ibert roberta roberta-prelayernorm
    switch_transformers t5 xlm-roberta xmod xlnet llama mistral falcon""".split()

# Names that some class gives its special tokens if no file does.
USUAL = ["<s>", "</s>", "<unk>", "<pad>", "<mask>", "[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]", "<cls>", "<sep>", "<bos>", "<eos>",
         "<|endoftext|>", "<|padding|>", "<|startoftext|>", "<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>", "<UNK>", "<SEP>", "<PAD>", "<CLS>",
         "<MASK_TOKEN>", "<eop>", "<eod>", "<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED", "<mask_1>", "<mask_2>",
         *(f"\u2581<{name}>" for name in ("PRE", "MID", "SUF", "EOT")), *(f"<unk_{i}>" for i in range(2, 103)),
         *(f"<extra_id_{i}>" for i in range(100))]


def add_usual(rng, described):
    """The tokens that a class would add, so that it has none to add."""
    there = {token["content"] for token in described["added_tokens"]}
    vocab = described["model"]["vocab"]
    described["added_tokens"] = [token for i, token in enumerate(described["added_tokens"])
                                 if token["content"] not in [each["content"] for each in described["added_tokens"][:i]]]
    for content in USUAL:
        if content not in there and rng.random() < 0.995:
            described["added_tokens"].append({
                "id": len(vocab) + len(described["added_tokens"]), "content": content, "single_word": False,
                "lstrip": content == "<mask>", "rstrip": False, "normalized": False, "special": True})


def token_entry(rng, content, as_object):
    if not as_object:
        return content
    return {"__type": "AddedToken", "content": content, "lstrip": rng.random() < 0.2, "rstrip": rng.random() < 0.2,
            "single_word": rng.random() < 0.15, "normalized": rng.random() < 0.3, "special": rng.random() < 0.8}


def contents_of(rng, described):
    """Texts of tokens that may get a name: existing ones, and new ones."""
    vocab = described["model"]["vocab"]
    known = list(vocab) if isinstance(vocab, dict) else [piece for piece, _ in vocab]
    added = [token["content"] for token in described["added_tokens"]]
    return added * 4 + rng.sample(known, min(4, len(known))) + ["<s>", "</s>", "<pad>", "<new>", "ab ", "\u4e2d\u4e2d"]


def files_of(rng, described):
    """Files that accompany a tokenizer.json, by name, as no release would save them."""
    contents = contents_of(rng, described)
    config = {}
    if rng.random() < 0.6:
        config["tokenizer_class"] = rng.choice(CLASSES)
    if rng.random() < 0.5:
        listed = {str(token["id"]): {k: v for k, v in token.items() if k != "id"} for token in described["added_tokens"]
                  if rng.random() < 0.9}
        for _ in range(rng.choice((0, 0, 1, 2))):
            listed[str(5000 + len(listed))] = token_entry(rng, rng.choice(contents), True)
        config["added_tokens_decoder"] = listed
    as_objects = rng.random() < 0.3
    for name in NAMES:
        if rng.random() < 0.3:
            config[name] = None if rng.random() < 0.1 else token_entry(rng, rng.choice(contents), as_objects)
    if rng.random() < 0.3:
        config[rng.choice(("additional_special_tokens", "extra_special_tokens"))] = [
            token_entry(rng, content, as_objects) for content in rng.sample(contents, rng.choice((0, 1, 2)))]
    for key, values in (("add_bos_token", (True, False)), ("add_eos_token", (True, False)), ("add_prefix_space", (True, False)),
                        ("clean_up_tokenization_spaces", (True, False)), ("model_max_length", (4, 1000)),
                        ("padding_side", ("left", "right")), ("legacy", (True, False)), ("do_lower_case", (True, False)),
                        ("strip_accents", (True, False, None)), ("split_special_tokens", (True, False)), ("errors", ("replace",)),
                        ("image_token", (rng.choice(contents),)), ("extra_ids", (0, 2)), ("vocab_size", (7,))):
        if rng.random() < 0.08:
            config[key] = rng.choice(values)
    files = {"tokenizer_config.json": config}
    if "tokenizer_class" not in config:  # then the class of the model counts, if any
        files["config.json"] = {"model_type": rng.choice(MODEL_TYPES)}
        if rng.random() < 0.2:
            files["config.json"]["tokenizer_class"] = rng.choice(CLASSES)
    if rng.random() < 0.25:
        files["special_tokens_map.json"] = {name: token_entry(rng, rng.choice(contents), rng.random() < 0.4)
                                            for name in NAMES if rng.random() < 0.4}
    if rng.random() < 0.15:
        files["added_tokens.json"] = {token["content"]: token["id"] for token in described["added_tokens"]}
        if rng.random() < 0.2:
            files["added_tokens.json"]["<old>"] = 999
    return files


def settings_of(rng, described):
    """Changes to a tokenizer before a release saves it."""
    contents = contents_of(rng, described)
    settings = {name: rng.choice(contents) for name in NAMES if rng.random() < 0.4}
    if rng.random() < 0.3:
        settings["additional_special_tokens"] = rng.sample(contents, rng.choice((1, 2)))
    return settings


def named_in(files):
    """All texts that may become an added token."""
    def walk(value):
        if isinstance(value, dict):
            for key, each in value.items():
                yield key
                yield from walk(each)
        elif isinstance(value, list):
            for each in value:
                yield from walk(each)
        elif isinstance(value, str):
            yield value
    return set(walk(files))


def survives(described, contents):
    """Whether no added token is empty after normalization or equal to another: the package would crash or pick one at random."""
    from tokenizers import Tokenizer
    normalizer = Tokenizer.from_str(json.dumps(described)).normalizer
    contents = {token["content"] for token in described["added_tokens"]} | contents
    if normalizer is None:
        return True
    normal = [normalizer.normalize_str(content) for content in contents if content]
    return all(normal) and len(set(normal)) == len(normal)


def open_like_megatron(folder):
    from transformers import AutoTokenizer
    tokenizer = AutoTokenizer.from_pretrained(folder, use_fast=True)
    shared = {}
    for one, other in (("eos_token", "sep_token"), ("bos_token", "cls_token")):
        if getattr(tokenizer, one) is None and getattr(tokenizer, other):
            shared[one] = getattr(tokenizer, other)
        elif getattr(tokenizer, other) is None and getattr(tokenizer, one):
            shared[other] = getattr(tokenizer, one)
    tokenizer.add_special_tokens({**shared, "additional_special_tokens": []})
    return tokenizer


def answer(job):
    if "settings" in job:
        from transformers import PreTrainedTokenizerFast
        PreTrainedTokenizerFast(tokenizer_file=job["file"], **job["settings"]).save_pretrained(job["folder"])
        return {}
    tokenizer = open_like_megatron(job["folder"])
    eod = tokenizer.convert_tokens_to_ids([tokenizer.eos_token])[0] if tokenizer.eos_token else None
    ids, respelled = [], 0
    for text in job["texts"]:
        try:
            ids.append(tokenizer(text, add_special_tokens=job["specials"]).input_ids)
            if not job["specials"]:
                respelled += tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text)) != ids[-1]
        except BaseException as e:  # a panic does not derive from Exception
            if isinstance(e, KeyboardInterrupt):
                raise
            ids.append(REFUSED)
    return {"size": len(tokenizer), "eod": -1 if eod is None else eod, "ids": ids, "respelled": respelled}


def serve():
    """Reads one job per line and writes one answer per line."""
    replies = os.fdopen(os.dup(1), "w")
    for fd in (1, 2):  # the packages print much
        os.dup2(os.open(os.devnull, os.O_WRONLY), fd)
    os.environ.update(TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")
    import transformers
    print(json.dumps(transformers.__version__), file=replies, flush=True)
    for line in sys.stdin:
        try:
            reply = answer(json.loads(line))
        except BaseException as e:
            if isinstance(e, KeyboardInterrupt):
                raise
            reply = {"error": f"{type(e).__name__}: {e}"[:200]}
        print(json.dumps(reply), file=replies, flush=True)


class Release:
    """One of the releases, in its own process."""

    def __init__(self, python):
        self.process = subprocess.Popen([python, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        version = self.process.stdout.readline()
        if not version:
            print(f"skipped: {python} has no transformers")
            sys.exit(77)
        self.version = json.loads(version)

    def ask(self, **job):
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


class Tally:
    def __init__(self, verbose):
        self.verbose = verbose
        self.counts = collections.Counter()
        self.refusals = collections.Counter()
        self.undecided = collections.Counter()
        self.respelled = 0

    def compare(self, case, files, answers, head, found):
        folder, specials, _, texts = case
        name = files["tokenizer_config.json"].get("tokenizer_class", json.dumps(files.get("config.json", "no class")))
        if not head.startswith("ok"):
            self.counts["refused by us"] += 1
            self.refusals[head.removeprefix("refused ").split(": ", 1)[-1].split(" (at")[0][:70]] += 1
            return
        older, newer = answers
        if "error" in older or "error" in newer:
            self.counts["refused by a release"] += 1
            return
        ours = {"size": int(head.split()[1]), "eod": int(head.split()[2]), "ids": [ids for ids, _ in found]}
        self.respelled += newer.pop("respelled")
        del older["respelled"]
        self.counts["on which both agree"] += older == newer
        if older != newer:
            self.counts["on which they differ"] += 1
            self.undecided[name] += 1
        for i, ids in enumerate(older["ids"]):
            if ids == newer["ids"][i] == REFUSED:  # why it was refused does not matter
                ours["ids"][i] = REFUSED
        if ours in (older, newer):
            return
        for what in ("size", "eod", "ids"):
            if ours[what] not in (older[what], newer[what]) or older == newer and ours[what] != older[what]:
                return self.differ(case, files, what, ours, older, newer)
        self.differ(case, files, "size", ours, older, newer)

    def differ(self, case, files, what, ours, older, newer):
        self.counts["differences"] += 1
        if self.counts["differences"] > (1000 if self.verbose else 5):
            return
        shown = ours[what], older[what], newer[what]
        text = ""
        if what == "ids":
            at = next(i for i, pair in enumerate(zip(*shown[:2])) if pair[0] != pair[1])
            text, shown = f" of {case[3][at]!a}", [each[at] for each in shown]
        described = json.loads((case[0] / "tokenizer.json").read_text())
        described["model"] = {k: v for k, v in described["model"].items() if k not in ("vocab", "merges")}
        print(f"{case[0]} specials {case[1]}: {what}{text}: ours {shown[0]}, older {shown[1]}, newer {shown[2]}\n"
              f"  {json.dumps(files)}\n  {json.dumps(described)[:3000]}", flush=True)


def make_folder(rng, folder, releases):
    """A folder that all can open, and its files; or None."""
    described = tokenizer_of(rng)
    if described["model"].get("type") == "Unigram":  # for a piece that occurs twice, the releases count one
        described["model"]["vocab"] = list({piece[0]: piece for piece in reversed(described["model"]["vocab"])}.values())[::-1]
    if rng.random() < 0.5:
        add_usual(rng, described)
    folder.mkdir()
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(described))
    saved = rng.random() < 0.4
    settings = settings_of(rng, described)
    files = files_of(rng, described)
    try:
        if not survives(described, named_in(settings if saved else files)):
            return None
    except BaseException as e:
        if isinstance(e, KeyboardInterrupt):
            raise
        return None
    if saved:
        by = rng.choice(releases)
        if "error" in by.ask(settings=settings, file=str(path), folder=str(folder)):
            return None
        files = {each.name: json.loads(each.read_text()) for each in folder.iterdir() if each != path}
    else:
        for name, content in files.items():
            (folder / name).write_text(json.dumps(content))
    marks = [each for each in contents_of(rng, described) if each]
    return files, [text_of(rng, marks) for _ in range(TEXTS)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--driver")
    parser.add_argument("--other", help="Python with another release")
    parser.add_argument("--folders", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="parent of the random folders")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    if options.serve:
        return serve()
    if not options.other or not pathlib.Path(options.other).exists():
        print("skipped: needs two releases of transformers (scripts/setup --tokenizers)")
        sys.exit(77)
    releases = sorted((Release(python) for python in (sys.executable, options.other)), key=lambda each: each.version)
    print(f"seed {options.seed}, transformers {' and '.join(each.version for each in releases)}", flush=True)
    rng = random.Random(options.seed)
    tally = Tally(options.verbose)
    cases, others = [], []
    with tempfile.TemporaryDirectory() as made:
        root = pathlib.Path(options.keep or made)
        for number in range(options.folders):
            folder = root / f"{options.seed}_{number}"
            specials = rng.choice(("yes", "no"))
            files_and_texts = make_folder(rng, folder, releases)
            if files_and_texts is None:
                tally.counts["that no release survives"] += 1
                continue
            files, texts = files_and_texts
            cases.append((folder, specials, "allow", texts))
            others.append((files, [each.ask(folder=str(folder), specials=specials == "yes", texts=texts) for each in releases]))
        for case, (files, answers), (head, found) in zip(cases, others, ask_driver(options.driver, cases)):
            tally.compare(case, files, answers, head, found)
    print("folders: " + ", ".join(f"{count} {what}" for what, count in sorted(tally.counts.items())))
    print(f"  {tally.respelled} texts that Megatron spells again")
    for problem, count in tally.refusals.most_common(15):
        print(f"  {count} refused: {problem}")
    for name, count in tally.undecided.most_common(15):
        print(f"  {count} on which the releases differ: {name}")
    enough = tally.counts["on which both agree"] * 10 >= options.folders
    if not enough:
        print("too few folders were compared, so the result means little")
    sys.exit(1 if tally.counts["differences"] or not enough else 0)


if __name__ == "__main__":
    main()
