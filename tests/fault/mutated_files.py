#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the programs on files with random damage: flipped, cut, inserted, repeated or zeroed bytes.

These files are damaged: the .idx, .bin and sidecars of a dataset, the caches that prepare-cache writes,
a state of a run, the journal of an unfinished run, the files of tokenizers, and compressed inputs. The
program that reads the file must have one of these outcomes:

  refused  It exits with 1 or 2 and prints a sentence on stderr. `inspect_dataset verify` exits with 1
           and prints the fault that it finds on stdout, or exits with 4.
  equal    It exits with 0. Its output and files are those of the run on undamaged files.
  other    It exits with 0, and its result differs in a way that the rule for these files allows. --rules
           prints the rules.

Any other outcome is `wrong`: a signal, a failure of a sanitizer, a request for as much memory as a
damaged size states, or a result that the rule forbids. A run that exceeds its time limit `hangs`.

Exits with 1 if a run was wrong or hung, or if no case was tried.
"""

import bz2
import gzip
import itertools
import json
import lzma
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import zlib

import attack


def mutated(data, chance):
    """Returns a copy of the data that is damaged in a few places."""
    data = bytearray(data)
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        at = chance.randrange(len(data) + 1)
        # Headers are small, but most checks apply to them. So headers are damaged more often than
        # the rest.
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


class Damage:
    """One damaged file in a folder of undamaged files, and the result of a command that exited with
    0."""

    def __init__(self, target, folder, name, data, command, result):
        self.target, self.folder, self.name, self.data = target, folder, name, data
        self.command, self.out, self.err = command, printed(result, folder), result.err
        self.wanted_out, self.wanted = target.undamaged[target.commands.index(command)]
        self.found = contents(folder)
        if not target.is_output and self.found.get(name) == data:  # the command has only read the file
            self.found[name] = self.wanted[name]
        self.differing = {each for each in self.found.keys() | self.wanted.keys()
                          if self.found.get(each) != self.wanted.get(each)}
        self.prints_otherwise = self.out != self.wanted_out and not target.prints_progress

    @property
    def is_none(self):
        return self.data == self.target.files[self.name]

    @property
    def differs(self):
        """How the result differs from the result on undamaged files; empty if it does not differ."""
        files = attack.difference(self.found, self.wanted)
        return ", ".join(filter(None, [files, self.prints_otherwise and "stdout differs"]))


def printed(result, folder):
    """Returns what a command printed, with placeholders for its folder, times and amounts of memory."""
    return re.sub(r"[0-9.]+ (s|MB/s|MB|GB)\b", r"N \1", result.out.replace(str(folder), "FOLDER"))


def contents(folder):
    """Returns the files of a folder, with a placeholder for the folder's name in their contents. All
    folders have names of the same length."""
    return {name: data.replace(os.fsencode(folder), b"FOLDER")
            for name, data in attack.contents(folder).items()}


class Rule:
    """Describes which results may differ from those on undamaged files. `words` is the text that --rules
    prints. `problem` is a function that takes a Damage and returns what is wrong, or None."""

    def __init__(self, words, problem):
        self.words, self.problem = words, problem


NOTHING = Rule("nothing", lambda damage: damage.differs)


class Target:
    """A set of files, which of them may be damaged, and the commands that read them.

    If `is_output`, the commands also write the damaged file, and must restore it. If
    `prints_progress`, stdout is not compared. If a file name has an ending in `found_by_verify`,
    `inspect_dataset verify` must find all damage in that file.
    """

    def __init__(self, name, files, endings, commands, rule, *, is_output=False,
                 prints_progress=False, found_by_verify=()):
        self.name, self.files, self.commands = name, files, commands
        self.rule, self.is_output, self.found_by_verify = rule, is_output, found_by_verify
        self.prints_progress = prints_progress
        self.undamaged = []  # for each command, its output and files; set by control()
        self.limit_s = 0  # time limit; set by control()
        self.names = [each for each in files if each.endswith(endings)]
        if not self.names:
            sys.exit(f"{name}: no file to damage")


def targets_in(root, programs):
    preprocess, merge = programs / "preprocess_data", programs / "merge_datasets"
    inspect = programs / "inspect_dataset"
    chance = random.Random(1)
    corpus = attack.Corpus(root / "in", chance, 32, dirty=True)
    corpus.add_archives(chance, root / "in")
    keys = [*attack.quarantine("text"), "--workers", "2"]

    def made(command, kill_at=None):
        return attack.made(root, command, kill_at)[0]

    def preprocessing(*flags):
        return lambda folder: attack.preprocessing(preprocess, corpus.inputs, folder / "out", *keys,
                                                   *flags)

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
    found = (".idx", ".bin", ".sum")

    def verify(prefix):
        return attack.run([inspect, "verify", prefix])

    def unless_verify_finds_it(damage):
        if verify(damage.folder / prefix).status == 0:
            return f"{damage.differs}; and verify finds nothing"
        return None

    def sidecars_that_say_otherwise(damage):
        if damage.name.endswith(".sum"):
            return unless_verify_finds_it(damage)
        if damage.name.endswith(".meta"):
            return None if same_keys(damage) else f"{damage.differs}; and Python reads no such .meta"
        if damage.name.endswith(".src") and not damage.differing:
            return None if without_places(damage.out) == without_places(damage.wanted_out) else (
                f"{damage.differs} in more than places")
        return damage.differs

    by_verify = Rule("another output, if verify finds the damage", unless_verify_finds_it)
    yield Target("index", dataset, ".idx", inspecting, by_verify, found_by_verify=found)
    yield Target("tokens", dataset, ".bin", inspecting[2:5], by_verify, found_by_verify=found)
    yield Target("sidecars", dataset, (".meta", ".sum", ".src", ".bad"), inspecting,
                 Rule("what a .meta says that is still JSON with the same keys; other places of "
                      "documents by a damaged .src, which has no checksum; another output if verify "
                      "finds the damage of the .sum", sidecars_that_say_otherwise),
                 found_by_verify=found)

    def already_complete(damage):
        if damage.differing != {damage.name} or "already complete" not in damage.err:
            return damage.differs
        if damage.name.endswith(".sum"):
            return unless_verify_finds_it(damage)
        return None

    yield Target("sidecars of a finished run", dataset, (".meta", ".sum", ".src", ".bad"),
                 [preprocessing("--resume")],
                 Rule("a damaged sidecar that stays: --resume says that the run is complete, since "
                      "its sidecars are there", already_complete), is_output=True)

    def merged_sidecar_of_it(damage):
        ending = damage.name[damage.name.rindex("."):]
        allowed = {f"merged{ending}"} if ending in (".meta", ".src", ".bad") else set()
        if damage.differing - allowed or ending == ".meta" and not same_keys(damage):
            return damage.differs
        return None

    parts = {f"parts/{of}{name[len(prefix):]}": data for of in "ab" for name, data in dataset.items()}
    yield Target("parts of a merge", parts, (".idx", ".bin", ".meta", ".sum", ".src", ".bad"), [
        lambda folder: [merge, "--input", folder / "parts", "--output-prefix", folder / "merged"],
        lambda folder: [merge, "--input", folder / "parts", "--output-prefix", folder / "merged",
                        "--shuffle-documents", "3"]],
        Rule("a merged .meta, .src or .bad with what the damaged one of a part says",
             merged_sidecar_of_it))

    shutil.copy(attack.GOLDEN / "megatron_cache" / "tokenizer.json", root)
    for name in (prefix + ".bin", prefix + ".idx"):
        (root / name).write_bytes(dataset[name])
    cached = ["--data-path", root / prefix, "--seq-length", "8", *attack.SAMPLES,
              "--tokenizer-description", root / "tokenizer.json", "--data-cache-path"]
    caches = made(lambda folder: [inspect, "prepare-cache", *cached, folder])

    def unless_a_full_look_finds_it(damage):
        if "--verify" in damage.command(damage.folder):
            return damage.differs
        look = attack.run([inspect, "prepare-cache", *cached, damage.folder, "--verify"])
        if look.status == 0 and attack.contents(damage.folder) != caches:
            return f"{damage.differs}; and prepare-cache --verify finds nothing"
        return None

    yield Target("caches", caches, (".npy", ".txt"), [
        lambda folder: [inspect, "prepare-cache", *cached, folder],
        lambda folder: [inspect, "prepare-cache", *cached, folder, "--verify"],
        lambda folder: [inspect, "where", *cached, folder, "--order", "megatron", "--step", "0",
                        "--rank", "0", "--slot", "0"]],
        Rule("what a look at samples overlooks, if prepare-cache --verify refuses or mends it",
             unless_a_full_look_finds_it), is_output=True, prints_progress=True)

    def other_edits(damage):
        try:
            read = json.loads(damage.data)
        except ValueError:
            return f"{damage.differs}; and Python reads no such JSON"
        if {**state, "edits": 0} != {**read, "edits": 0}:
            return f"{damage.differs}; and more differs than the edits"
        return None

    state = {"millrace_state": 1, "order": "instant", "seq_len": 16, "global_batch": 2,
             "edits": [{"skip_samples": [1, 3], "why": "spike"},
                       {"replay_steps": [0, 1], "at_step": 1, "why": "again"}]}
    yield Target("state", {**dataset, "state.json": json.dumps(state).encode()}, "state.json", [
        lambda folder: [inspect, "where", folder / prefix, "--order", "instant", *run, "--state",
                        folder / "state.json", "--step", "0", "--rank", "0", "--slot", "1"],
        lambda folder: [inspect, "audit", folder / prefix, "--order", "instant", *run, "--state",
                        folder / "state.json"]],
        Rule("a state that Python reads and that differs in its edits alone", other_edits))

    half = made(preprocessing(), "journal:9")
    yield Target("journal", half, ".journal", [
        preprocessing("--resume"), preprocessing("--overwrite")],
        NOTHING, is_output=True)

    def tokenizing(*flags):
        return lambda folder: attack.preprocessing(
            preprocess, [root / "in/a.jsonl"], folder / "out", *keys,
            *[folder / flag[1:] if isinstance(flag, str) and flag.startswith("/") else flag
              for flag in flags])

    def other_tokenizer(damage):
        """Allows a result with other ids only if the dataset is complete, has the same documents, and has
        another tokenizer fingerprint."""
        meta, undamaged = (json.loads(files[f"{prefix}.meta"])
                           for files in (damage.found, damage.wanted))
        if meta["tokenizer"]["fingerprint"] == undamaged["tokenizer"]["fingerprint"]:
            return f"{damage.differs}; and the fingerprint is the same"
        if damage.found.keys() != damage.wanted.keys():
            return damage.differs
        if meta["counts"]["documents"] != undamaged["counts"]["documents"]:
            return f"{damage.differs}; and the documents are other ones"
        verified = attack.run([inspect, "verify", damage.folder / prefix, "--vocab-size",
                               meta["tokenizer"]["vocab_size"]])
        return f"{damage.differs}; and verify: {verified.out}" if verified.status else None

    tokenizer_rule = Rule("a whole dataset of the same documents, if .meta has another fingerprint",
                          other_tokenizer)
    golden = attack.GOLDEN
    read = lambda *paths: {path.name: path.read_bytes() for path in paths}
    yield Target("GPT-2 tokenizer", read(golden / "tiny_bpe/vocab.json",
                                         golden / "tiny_bpe/merges.txt"), (".json", ".txt"),
                 [tokenizing("--tokenizer-type", "GPT2BPETokenizer", "--vocab-file", "/vocab.json",
                             "--merge-file", "/merges.txt")], tokenizer_rule)
    with_cache = tokenizing("--tokenizer-type", "GPT2BPETokenizer", "--vocab-file",
                            golden / "tiny_bpe/vocab.json", "--merge-file",
                            golden / "tiny_bpe/merges.txt", "--tokenizer-cache", "/cache")
    tables = {name: data for name, data in made(with_cache).items() if "cache" in name}
    yield Target("tokenizer cache", tables, ".tables", [with_cache], NOTHING, is_output=True)
    yield Target("tokenizer.json", {"tokenizer.json": bpe_json(golden / "tiny_bpe")}, ".json",
                 [tokenizing("--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model",
                             "/tokenizer.json")], tokenizer_rule)
    yield Target("ranks", read(golden / "tiny_ranks/tiny.tiktoken",
                               golden / "tiny_ranks/tiny.vocab.json"), ("tiktoken", ".json"), [
        tokenizing("--tokenizer-type", "TikTokenizer", "--tokenizer-model", "/tiny.tiktoken",
                   "--tiktoken-pattern", "r50k", "--tokenizer-special-tokens", "<s>"),
        tokenizing("--tokenizer-type", "TikTokenizer", "--tokenizer-model", "/tiny.vocab.json",
                   "--tiktoken-num-special-tokens", "20", "--vocab-size",
                   "623")], tokenizer_rule)
    for model in ("bpe", "unigram", "suffix"):
        yield Target(f"{model}.model", read(golden / f"tiny_sentencepiece/{model}.model"), ".model",
                     [tokenizing("--tokenizer-type", "SentencePieceTokenizer", "--tokenizer-model",
                                 f"/{model}.model")], tokenizer_rule)

    archives = {path.name: path.read_bytes() for path in sorted((root / "in").iterdir())
                if path.suffix != ".jsonl"}

    def another_archive(damage):
        text = decompressed(damage.name, damage.data)
        if text is None:
            return f"{damage.differs}; and another program finds the archive damaged"
        if "--dry-run" in damage.command(damage.folder):
            return None
        with tempfile.TemporaryDirectory(dir=root) as other:
            plain = pathlib.Path(other) / "plain.jsonl"
            plain.write_bytes(text)
            attack.run(attack.preprocessing(preprocess, [plain], plain.parent / "out", *keys))
            for end in ("bin", "idx"):
                if (plain.parent / f"{prefix}.{end}").read_bytes() != damage.found[f"{prefix}.{end}"]:
                    return f"{damage.differs}; and not what another program decompresses"
        return None

    for name, data in archives.items():
        yield Target(name.split(".")[-1], {name: data}, name, [
            lambda folder, name=name: attack.preprocessing(
                preprocess, [folder / name], folder / "out", *keys),
            lambda folder, name=name: attack.preprocessing(
                preprocess, [folder / name], folder / "out", *keys, "--dry-run")],
            Rule("the tokens of another text, if another program decompresses it too; a file of no "
                 "bytes is an empty text", another_archive))


def decompressed(name, data):
    """Returns the contents that Python's own modules decompress, or None if they find damage."""
    if not data:
        return b""
    try:
        if name.endswith(".gz"):
            return gzip.decompress(data)
        if name.endswith(".bz2"):
            return bz2.decompress(data)
        if name.endswith(".xz"):
            return lzma.decompress(data)
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError):
        return None
    done = subprocess.run(["zstd", "-d", "-q", "-c"], input=data, capture_output=True)
    return done.stdout if done.returncode == 0 else None


def bpe_json(folder):
    """Returns a tokenizer.json with the vocabulary and the merges in a folder."""
    vocab = json.loads((folder / "vocab.json").read_text())
    merges = [line for line in (folder / "merges.txt").read_text().split("\n")
              if line and not line.startswith("#version")]
    return json.dumps({
        "version": "1.0", "added_tokens": [], "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                          "use_regex": True},
        "post_processor": None, "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": vocab, "merges": merges}}).encode()


def same_keys(damage):
    """Returns whether Python reads both the damaged file and the undamaged file as JSON objects, with
    the same keys."""
    try:
        read = json.loads(damage.data)
    except ValueError:
        return False
    return isinstance(read, dict) and read.keys() == json.loads(
        damage.target.files[damage.name]).keys()


def without_places(text):
    return re.sub(r"from .*?, line \d+, bytes \d+ to \d+", "from a place", text, flags=re.DOTALL)


class Mutations:
    def __init__(self, root, programs):
        self.root = root
        self.numbers = itertools.count()
        self.lock = threading.Lock()
        self.problems = []
        self.table = attack.Table(("damaged", "command"),
                                  ("refused", "equal", "other", "wrong", "hangs"))
        (root / "cases").mkdir()
        self.limit_memory = not any(attack.is_sanitized(programs / each) for each in (
            "preprocess_data", "merge_datasets", "inspect_dataset"))

    def control(self, target):
        """Records the result of each command on undamaged files."""
        for command_of in target.commands:
            folder = self.new_folder()
            attack.fill(folder, target.files)
            result = self.run(command_of(folder), attack.PATIENCE * attack.LIMIT_S)
            target.limit_s = max(target.limit_s, attack.limit_of(result.seconds))
            if result.status != 0:
                sys.exit(f"{target.name}, undamaged: {command_of(folder)} exits with "
                         f"{result.status}: {result.err}")
            target.undamaged.append((printed(result, folder), contents(folder)))
            shutil.rmtree(folder)

    def new_folder(self):
        return self.root / "cases" / f"{next(self.numbers):09}"

    def run(self, command, limit_s):
        return attack.run(command, attack.HOOKS, limit_s, self.limit_memory)

    def attempt(self, case):
        target, seed = case
        chance = random.Random(seed)
        folder = self.new_folder()
        name = chance.choice(target.names)
        data = mutated(target.files[name], chance)
        which = chance.randrange(len(target.commands))
        attack.fill(folder, {**target.files, name: data})
        command = target.commands[which](folder)
        result = self.run(command, target.limit_s)
        if result.status == 0 and not attack.crash_of(result):
            outcome, problem = self.judge_success(Damage(target, folder, name, data,
                                                         target.commands[which], result))
        else:
            outcome, problem = self.judge_refusal(command, result)
        self.record(case, command, outcome, problem and (
            f"{name} damaged: {problem}\n    status {result.status}: {result.err.strip()[-600:]}"))
        shutil.rmtree(folder)

    @staticmethod
    def judge_success(damage):
        verifies = damage.command(damage.folder)[1] == "verify"
        if verifies and damage.name.endswith(damage.target.found_by_verify) and not damage.is_none:
            return "wrong", "verify exits with 0"
        if not damage.differs:
            return "equal", None
        if problem := damage.target.rule.problem(damage):
            return "wrong", f"exit 0, but {problem}"
        return "other", None

    @staticmethod
    def judge_refusal(command, result):
        if problem := attack.crash_of(result):
            return "wrong", problem
        verifies = command[1] == "verify"
        if result.status not in ((1, 2, 4) if verifies else (1, 2)):
            return "wrong", f"status {result.status} is not documented"
        program = pathlib.Path(command[0]).name
        if verifies and result.status == 1:
            return ("refused", None) if len(result.out) > 20 else ("wrong", "verify names no fault")
        if problem := attack.refusal_problem(result, program):
            return "wrong", problem
        if "out of memory" in result.err:
            return "wrong", "asks for as much memory as the damage says"
        return "refused", None

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


def main():
    parser = attack.arguments(__doc__.splitlines()[0])
    parser.add_argument("--only", help="damage only files of this kind")
    parser.add_argument("--mutation", type=int, help="with --only: try only this mutation")
    parser.add_argument("--rules", action="store_true",
                        help="print which results other than the undamaged one may pass, and stop")
    given = parser.parse_args()
    if given.mutation is not None and not given.only:
        parser.error("--mutation requires --only")
    seed = attack.seed_of(given)
    if given.cases is None:
        given.cases = 20000
    with attack.scratch_folder(given, "mutated") as name:
        root = pathlib.Path(name)
        programs = given.bin.resolve()
        mutations = Mutations(root, programs)
        targets = list(targets_in(root, programs))
        if given.rules:
            for target in targets:
                print(f"{target.name}: {target.rule.words}")
            return 0
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
