#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the programs on files with random damage: flipped, cut, inserted, repeated or zeroed bytes.

Damaged are the .idx, .bin and sidecars of a dataset, the caches that prepare-cache writes, a state of
a run, the journal of an unfinished run, the files of tokenizers and compressed inputs. The program
that reads the file must exit with 0, or with 1 or 2 and a sentence: on stderr, or on stdout for
`inspect_dataset verify`, which answers with the fault it finds. A signal, a failure of a sanitizer,
and a run longer than the limit are wrong.

Exits 1 if a run ended otherwise.
"""

import itertools
import json
import pathlib
import random
import shutil
import subprocess
import sys
import threading

import attack


def mutated(data, chance):
    """Data with a few damaged places."""
    data = bytearray(data)
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        at = chance.randrange(len(data) + 1)
        # Headers are small, and most of the checks are of them.
        if chance.random() < 0.4:
            at = min(at, chance.randrange(64))
        size = chance.choice([1, 1, 2, 4, 8, 64])
        action = chance.choice(["flip", "flip", "set", "insert", "remove", "repeat", "cut", "huge"])
        if action == "flip" and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif action == "set":
            data[at:at + size] = bytes([chance.choice([0, 0xFF, 0x7F, 0x80, ord("9"), ord('"'),
                                                       ord("[")])]) * len(data[at:at + size])
        elif action == "insert":
            data[at:at] = chance.randbytes(size)
        elif action == "remove":
            del data[at:at + size]
        elif action == "repeat":
            data[at:at] = data[at:at + size] * chance.choice([1, 2, 50])
        elif action == "cut":
            del data[at:]
        else:
            data[at:at + 8] = chance.choice([1 << 31, 1 << 32, 1 << 40, (1 << 63) - 1, 1 << 63,
                                             (1 << 64) - 1]).to_bytes(8, "little")
    return bytes(data)


class Target:
    """Files, those of them that may be damaged, and the commands that read them. Where `wanted` is
    given, a command that exits with 0 leaves just that."""

    def __init__(self, name, files, endings, commands, wanted=None):
        self.name, self.files, self.commands = name, files, commands
        self.wanted = wanted
        self.limit_s = 0  # control() finds out how long the commands take
        self.names = [each for each in files if each.endswith(endings)]
        if not self.names:
            sys.exit(f"{name}: no file to damage")


def targets_in(root, programs):
    preprocess, merge = programs / "preprocess_data", programs / "merge_datasets"
    inspect = programs / "inspect_dataset"
    chance = random.Random(1)
    corpus = attack.Corpus(root / "in", chance, 32, dirty=True)
    corpus.add_archives(chance, root / "in")
    keys = ["--json-keys", "text", "--on-bad-record", "quarantine", "--workers", "2"]

    def made(command, hooks=None, status=0):
        folder = root / "made"
        folder.mkdir()
        result = attack.run(command(folder), {**attack.HOOKS, **(hooks or {})})
        if result.status != status:
            sys.exit(f"a target cannot be prepared: status {result.status}: {result.err}")
        files = attack.contents(folder)
        shutil.rmtree(folder)
        return files

    def preprocessing(*flags):
        return lambda folder: [preprocess, "--input", *corpus.inputs, "--output-prefix",
                               folder / "out", *keys, *flags]

    dataset = made(preprocessing())
    prefix = "out_text_document"
    run = ["--seq-length", "16", "--micro-batch-size", "2", "--train-samples", "20"]
    inspecting = [
        lambda folder: [inspect, "info", folder / prefix],
        lambda folder: [inspect, "info", folder / prefix, "--json"],
        lambda folder: [inspect, "show", folder / prefix, "--doc", "3", "--all"],
        lambda folder: [inspect, "verify", folder / prefix],
        lambda folder: [inspect, "verify", folder / prefix, "--vocab-size", "256"],
        lambda folder: [inspect, "where", folder / prefix, "--order", "instant", *run, "--step", "0",
                        "--rank", "0", "--slot", "1"],
        lambda folder: [inspect, "where", folder / prefix, "--order", "megatron", *run,
                        "--document", "2"],
        lambda folder: [inspect, "audit", folder / prefix, "--order", "instant", *run],
    ]
    yield Target("index", dataset, ".idx", inspecting)
    yield Target("tokens", dataset, ".bin", inspecting[2:5])
    yield Target("sidecars", dataset, (".meta", ".sum", ".src", ".bad"), [
        *inspecting, lambda folder: [preprocess, "--resume", *preprocessing()(folder)[1:]]])

    parts = {f"parts/{of}{name[len(prefix):]}": data for of in "ab" for name, data in dataset.items()}
    yield Target("parts of a merge", parts, (".idx", ".meta", ".sum", ".src", ".bad"), [
        lambda folder: [merge, "--input", folder / "parts", "--output-prefix", folder / "merged"],
        lambda folder: [merge, "--input", folder / "parts", "--output-prefix", folder / "merged",
                        "--shuffle-documents", "3"]])

    shutil.copy(attack.GOLDEN / "megatron_cache" / "tokenizer.json", root)
    for name in (prefix + ".bin", prefix + ".idx"):
        (root / name).write_bytes(dataset[name])
    cached = ["--data-path", root / prefix, "--seq-length", "8", "--split", "8,1,1",
              "--train-samples", "30", "--valid-samples", "2", "--test-samples", "2",
              "--tokenizer-description", root / "tokenizer.json", "--data-cache-path"]
    caches = made(lambda folder: [inspect, "prepare-cache", *cached, folder])
    yield Target("caches", caches, (".npy", ".txt"), [
        lambda folder: [inspect, "prepare-cache", *cached, folder],
        lambda folder: [inspect, "prepare-cache", *cached, folder, "--verify"],
        lambda folder: [inspect, "where", *cached, folder, "--order", "megatron", "--step", "0",
                        "--rank", "0", "--slot", "0"]])

    state = {"millrace_state": 1, "order": "instant", "seq_len": 16, "global_batch": 2,
             "edits": [{"skip_samples": [1, 3], "why": "spike"},
                       {"replay_steps": [0, 1], "at_step": 1, "why": "again"}]}
    yield Target("state", {**dataset, "state.json": json.dumps(state).encode()}, "state.json", [
        lambda folder: [inspect, "where", folder / prefix, "--order", "instant", *run, "--state",
                        folder / "state.json", "--step", "0", "--rank", "0", "--slot", "1"],
        lambda folder: [inspect, "audit", folder / prefix, "--order", "instant", *run, "--state",
                        folder / "state.json"]])

    half = made(preprocessing(), {"MILLRACE_TEST_KILL_AT": "journal:9"}, -9)
    yield Target("journal", half, ".journal", [
        preprocessing("--resume"), preprocessing("--overwrite")], wanted=dataset)

    def tokenizing(*flags):
        return lambda folder: [
            preprocess, "--input", root / "in/a.jsonl", "--output-prefix", folder / "out", *keys,
            *[folder / flag[1:] if flag.startswith("/") else flag for flag in flags]]

    golden = attack.GOLDEN
    read = lambda *paths: {path.name: path.read_bytes() for path in paths}
    yield Target("GPT-2 tokenizer", read(golden / "tiny_bpe/vocab.json",
                                         golden / "tiny_bpe/merges.txt"), (".json", ".txt"),
                 [tokenizing("--tokenizer-type", "GPT2BPETokenizer", "--vocab-file", "/vocab.json",
                             "--merge-file", "/merges.txt")])
    yield Target("tokenizer.json", {"tokenizer.json": bpe_json(golden / "tiny_bpe")}, ".json",
                 [tokenizing("--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model",
                             "/tokenizer.json")])
    yield Target("ranks", read(golden / "tiny_ranks/tiny.tiktoken",
                               golden / "tiny_ranks/tiny.vocab.json"), ("tiktoken", ".json"), [
        tokenizing("--tokenizer-type", "TikTokenizer", "--tokenizer-model", "/tiny.tiktoken",
                   "--tiktoken-pattern", "r50k", "--tokenizer-special-tokens", "<s>"),
        tokenizing("--tokenizer-type", "TikTokenizer", "--tokenizer-model", "/tiny.vocab.json",
                   "--tiktoken-num-special-tokens", "20", "--vocab-size",
                   "623")])
    for model in ("bpe", "unigram", "suffix"):
        yield Target(f"{model}.model", read(golden / f"tiny_sentencepiece/{model}.model"), ".model",
                     [tokenizing("--tokenizer-type", "SentencePieceTokenizer", "--tokenizer-model",
                                 f"/{model}.model")])

    archives = {path.name: path.read_bytes() for path in sorted((root / "in").iterdir())
                if path.suffix != ".jsonl"}
    for name, data in archives.items():
        yield Target(name.split(".")[-1], {name: data}, name, [
            lambda folder, name=name: [preprocess, "--input", folder / name, "--output-prefix",
                                       folder / "out", *keys],
            lambda folder, name=name: [preprocess, "--input", folder / name, "--output-prefix",
                                       folder / "out", *keys, "--dry-run"]])


def bpe_json(folder):
    """A tokenizer.json of the vocabulary and merges of a folder."""
    vocab = json.loads((folder / "vocab.json").read_text())
    merges = [line for line in (folder / "merges.txt").read_text().split("\n")
              if line and not line.startswith("#version")]
    return json.dumps({
        "version": "1.0", "added_tokens": [], "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                          "use_regex": True},
        "post_processor": None, "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": vocab, "merges": merges}}).encode()


class Mutations:
    def __init__(self, root, programs):
        self.root = root
        self.numbers = itertools.count()
        self.lock = threading.Lock()
        self.problems = []
        self.table = attack.Table(("damaged", "command"), ("exit 0", "refused", "wrong", "hangs"))
        (root / "cases").mkdir()
        self.limit_memory = not attack.is_sanitized(programs / "preprocess_data")

    def control(self, target):
        """Commands that fail without damage would prove nothing."""
        for command_of in target.commands:
            folder = self.root / "cases" / "control"
            attack.fill(folder, target.files)
            result = self.run(command_of(folder), attack.PATIENCE * attack.LIMIT_S)
            target.limit_s = max(target.limit_s, attack.limit_of(result.seconds))
            if result.status != 0:
                sys.exit(f"{target.name}, undamaged: {command_of(folder)} exits with "
                         f"{result.status}: {result.err}")
            shutil.rmtree(folder)

    def run(self, command, limit_s):
        return attack.run(command, attack.HOOKS, limit_s, self.limit_memory)

    def attempt(self, case):
        target, seed = case
        chance = random.Random(seed)
        folder = self.root / "cases" / str(next(self.numbers))
        name = chance.choice(target.names)
        damaged = mutated(target.files[name], chance)
        command_of = chance.choice(target.commands)
        attack.fill(folder, {**target.files, name: damaged})
        command = command_of(folder)
        result = self.run(command, target.limit_s)
        outcome, problem = self.judge(command, result)
        if outcome == "exit 0" and target.wanted is not None:
            if wrong := attack.difference(attack.contents(folder), target.wanted):
                outcome, problem = "wrong", f"exit 0, but {wrong}"
        self.record(case, command, outcome, problem and (
            f"{name} damaged: {problem}\n    status {result.status}: {result.err.strip()[-600:]}"))
        shutil.rmtree(folder)

    def hangs(self, case, what):
        self.record(case, [""], "hangs", what)

    def record(self, case, command, outcome, problem):
        target, seed = case
        words = [str(word) for word in command]
        verb = words[1] if words[0].endswith("inspect_dataset") else pathlib.Path(words[0]).name
        with self.lock:
            self.table.add((target.name, verb), outcome)
            if problem:
                self.problems.append(f"--only '{target.name}' --mutation {seed}: {problem}\n"
                                     f"    {subprocess.list2cmdline(words)}")

    @staticmethod
    def judge(command, result):
        if problem := attack.crash_of(result):
            return "wrong", problem
        if result.status == 0:
            return "exit 0", None
        if result.status not in (1, 2):
            return "wrong", f"status {result.status} is not documented"
        program = pathlib.Path(command[0]).name
        if command[1] == "verify" and len(result.out) > 20:
            return "refused", None
        if problem := attack.refusal_problem(result, program):
            return "wrong", problem
        if "out of memory" in result.err:
            return "wrong", "asks for as much memory as the damage says"
        return "refused", None


def main():
    parser = attack.arguments(__doc__.splitlines()[0])
    parser.add_argument("--only", help="files of this kind alone")
    parser.add_argument("--mutation", type=int, help="with --only: this one alone")
    given = parser.parse_args()
    if given.mutation is not None and not given.only:
        parser.error("--mutation needs --only")
    seed = attack.seed_of(given)
    if given.cases is None:
        given.cases = 20000
    with attack.scratch_folder(given, "mutated") as name:
        root = pathlib.Path(name)
        programs = given.bin.resolve()
        mutations = Mutations(root, programs)
        targets = list(targets_in(root, programs))
        if given.only:
            names = [each.name for each in targets]
            if given.only not in names:
                parser.error(f"--only: there is no kind '{given.only}'; expected one of: "
                             f"{'; '.join(names)}")
            targets = [each for each in targets if each.name == given.only]
        for target in targets:
            mutations.control(target)
        if given.mutation is not None:
            cases = [(targets[0], given.mutation)]
        else:
            cases = [(target, attack.chosen_number(seed, target.name, turn))
                     for turn in range(given.cases // len(targets) + 1) for target in targets]
            cases = cases[:given.cases]
        tried = attack.work_through(cases, mutations.attempt, mutations.hangs,
                                    given.seconds)
        if tried == 0:
            mutations.problems.append("no case was tried: --cases or --seconds leaves none")
        mutations.table.print()
        print(f"mutated files: {tried} of {len(cases)} cases tried, "
              f"{mutations.table.total('wrong', 'hangs')} wrong")
        attack.report(mutations.problems)
        return 1 if mutations.problems else 0


if __name__ == "__main__":
    sys.exit(attack.guarded(main))
