# SPDX-License-Identifier: Apache-2.0
"""The package's programs as functions. Each runs a program in a process of its own, so that nothing that it
does (threads, signals, memory) touches the caller's process, and returns what the program prints as JSON."""
import contextlib
import json
import numbers
import os
import pathlib
import select
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from millrace import _arguments as check
from millrace import _core
from millrace._arguments import Path
from millrace._errors import ConfigError, Error, FormatError, IOError

FOLDER = pathlib.Path(__file__).resolve().parent / "bin"
# Exit codes of the programs.
DONE, FAILED, STOPPED = 0, 1, 3


@dataclass(frozen=True)
class Output:
    """A dataset that `preprocess` wrote."""
    prefix: str             # without .bin and .idx
    sequences: int
    documents: int
    tokens: int
    bin_bytes: int
    files: "list[str]" = field(default_factory=list)


@dataclass(frozen=True)
class Preprocessed:
    """What `preprocess` did."""
    documents: int
    tokens: int
    dtype: str              # numpy's name of the type of the tokens
    tokenizer_type: str
    outputs: "list[Output]"
    data_path: "list[str]"  # what Megatron's --data-path takes to train on the outputs
    seconds: float
    details: "dict[str, Any]" = field(repr=False, default_factory=dict)  # all that the program reports


@dataclass(frozen=True)
class Merged:
    """What `merge` wrote."""
    prefix: str
    dtype: str
    sequences: int
    documents: int
    tokens: int
    inputs: "list[str]"     # prefixes of the datasets, in their order in the output
    details: "dict[str, Any]" = field(repr=False, default_factory=dict)


@dataclass(frozen=True)
class Verified:
    """A dataset without a fault."""
    prefix: str
    dtype: str
    sequences: int
    documents: int
    tokens: int
    tokens_checked: bool    # False if there is nothing to compare the tokens with
    details: "dict[str, Any]" = field(repr=False, default_factory=dict)


@dataclass(frozen=True)
class Repaired:
    """What `repair` wrote."""
    file: "str | None"      # the new file; None if nothing was wrong
    changed: int            # numbers that were wrong
    proven: bool            # the files, as repaired, have the checksums that they were written with
    details: "dict[str, Any]" = field(repr=False, default_factory=dict)


@dataclass(frozen=True)
class Info:
    """What a dataset holds."""
    prefix: str
    dtype: str
    sequences: int
    documents: int
    tokens: int
    bin_bytes: int
    document_tokens: "dict[str, float] | None"  # min, median, mean and max; None without documents
    meta: "dict[str, Any] | None"               # the contents of its .meta; None without one
    details: "dict[str, Any]" = field(repr=False, default_factory=dict)


@dataclass(frozen=True)
class Piece:
    """Tokens of a row that come from one document."""
    at: int                 # offset in the row, in tokens
    document: int
    sequence: int
    first: int              # offset in the sequence, in tokens
    tokens: int
    source: "dict[str, Any] | None" = None  # input file, line and bytes of the document, from its .src


@dataclass(frozen=True)
class Slot:
    """A row that a rank gets in a step."""
    step: int
    rank: int
    slot: int
    sample: int             # index among the samples of the run
    prefix: str             # its dataset
    sample_of_prefix: int
    padding: int            # tokens of padding
    documents: "list[Piece]"


@dataclass(frozen=True)
class Query:
    """How often a query was found."""
    hits: int
    documents: int          # with at least one hit
    text: "str | None" = None
    ids: "list[int] | None" = None
    regex: "str | None" = None


@dataclass(frozen=True)
class Place:
    """A place where a query was found."""
    query: int              # index of the query
    prefix: str             # its dataset
    document: int
    token: int              # offset in the document of the first token that the hit touches
    tokens: int             # number of tokens that it touches
    begin: "int | None" = None        # bytes [begin, end) of the document's text; None for ids
    end: "int | None" = None
    begins_inside: bool = False       # the text of the first token begins before the hit
    ends_inside: bool = False
    before: str = ""                  # text directly before the hit
    text: str = ""                    # text of the hit, cut if it is long
    after: str = ""
    source: "dict[str, Any] | None" = None            # input file, line and bytes of the document, from its .src
    served: "list[dict[str, Any]] | None" = None      # with the flags of a run: the slots that served its tokens


@dataclass(frozen=True)
class Found:
    """What a search found."""
    hits: int               # of all queries
    hit_documents: int      # documents with a hit of any query
    documents: int          # searched
    tokens: int             # searched
    prefixes: "list[str]"   # the datasets
    queries: "list[Query]"
    places: "list[Place]"   # the first ones


@dataclass(frozen=True)
class Statistics:
    """Counts of one or several datasets."""
    documents: int
    sequences: int
    tokens: int
    document_tokens: "dict[str, Any] | None"   # empty, min, mean, max, quantiles in percent, histogram; None: no documents
    sequence_tokens: "dict[str, Any] | None"
    distinct_ids: int
    vocab_size: "int | None"        # of the tokenizer, or as given
    never_seen: "int | None"        # ids below vocab_size that do not occur
    outside_vocab: "int | None"     # tokens that are no ids below vocab_size
    entropy_bits: float             # per token
    special_tokens: "int | None"    # tokens that are special; None: the tokenizer is unknown
    text: "dict[str, Any] | None"   # bytes of text of the tokens that are not special; exact: they do not depend on neighbors
    frequent_ids: "list[dict[str, Any]]"
    datasets: "list[dict[str, Any]]"             # prefix, documents, tokens
    inputs: "list[dict[str, Any]] | None"        # input, documents, tokens; None: a dataset has no .src
    trained_tokens: "int | None" = None          # with a .mask
    document_trained_tokens: "dict[str, Any] | None" = None  # trained tokens per document, as document_tokens
    duplicates: "dict[str, Any] | None" = None   # documents, tokens, group_count, groups
    near_duplicates: "dict[str, Any] | None" = None   # parameters, compared, documents, tokens, pairs
    ngrams: "dict[str, Any] | None" = None       # n, positions, distinct, frequent
    contamination: "dict[str, Any] | None" = None     # n, documents, tokens, worst, texts


@dataclass(frozen=True)
class Filtered:
    """A dataset that was made of some documents of another one."""
    prefix: str                     # of the old dataset
    output_prefix: str
    documents: int                  # kept
    sequences: int
    tokens: int
    dropped: int                    # documents
    dropped_tokens: int
    sum_root: str


@dataclass(frozen=True)
class Difference:
    """How two things differ."""
    same: bool
    kind: str               # "datasets", "states" or "runs"
    details: "dict[str, Any]" = field(repr=False, default_factory=dict)  # all that the program reports


@dataclass(frozen=True)
class Ledger:
    """How often the tokens of one dataset are served, in one round of its order."""
    prefix: str
    round: str              # which passes over the dataset are counted
    times: int              # how often each token should be served
    tokens: int
    samples: int            # served
    served: int             # tokens served as often as expected
    not_in_steps: int       # tokens only in samples before or after the steps
    missing: int            # tokens not served for no known reason
    repeated: int           # tokens served more often than expected
    label_only: int         # last labels, which are inputs of the next window
    padding: int
    left_out: "list[dict[str, Any]]"  # tokens that the order, edits or the sampler leave out, and why
    replayed: "list[dict[str, Any]]"  # tokens that edits serve again, and why
    faults: "list[dict[str, Any]]"    # where tokens are missing or repeated; the first 16


@dataclass(frozen=True)
class Audit:
    """How often the steps of a run serve each token."""
    first_step: int
    last_step: int          # not audited itself
    sound: bool             # True if every token is served as often as it should be
    ledgers: "list[Ledger]"


@dataclass(frozen=True)
class PlannedData:
    """What a run takes from one of its datasets."""
    prefix: str
    share: float            # of the samples of the run, 0 to 1
    epochs: float           # average number of times that each token is served
    repeats_after_seconds: "float | None"  # None if the run ends before


@dataclass(frozen=True)
class Plan:
    """What a run needs from the machines of a cluster."""
    steps: int
    run_seconds: float
    utilisation: "float | None"  # compute time over elapsed time, 0 to 1; None if storage was not measured
    warnings: "list[str]"
    data: "list[PlannedData]"
    details: "dict[str, Any]"  # all that the program prints, e.g. details["node"]["bytes_per_second"]


@dataclass(frozen=True)
class Converted:
    """What `convert` wrote."""
    files: "list[str]"
    dtype: str              # numpy's name of the type of the tokens
    tokens: int
    documents: "int | None"           # None if nothing tells where documents end
    empty_documents: "int | None"
    sequences: "int | None"           # of a dataset
    lost: "list[str]"       # what the new format has no place for; only with lossy=True
    details: "dict[str, Any]" = field(repr=False, default_factory=dict)


T = TypeVar("T")


def _taken(kind: "type[T]", values: "dict[str, Any]", **more: Any) -> T:
    """An object of a dataclass from those of the values that it has fields for."""
    names = {each.name for each in fields(kind)}  # type: ignore[arg-type]
    return kind(**{key: value for key, value in values.items() if key in names and key not in more}, **more)


def _words(flags: "dict[str, Any]") -> Iterator[str]:
    """Keyword arguments as flags: `append_eod=True` is --append-eod."""
    for name, value in flags.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        yield flag
        if value is True:
            continue
        if isinstance(value, (str, os.PathLike)) or not isinstance(value, Iterable):
            value = [value]
        for each in value:
            if isinstance(each, numbers.Real) and not isinstance(each, numbers.Integral):
                each = repr(float(each))  # floats of numpy have another repr
            yield os.fspath(each) if isinstance(each, os.PathLike) else str(each)


def _listed(paths: "Path | Sequence[Path]") -> "list[str]":
    if isinstance(paths, (str, os.PathLike)):
        return [check.path("inputs", paths)]
    if isinstance(paths, bytes) or not isinstance(paths, Iterable):
        raise TypeError(f"inputs is {paths!r}, expected a path or a list of paths")
    return [check.path("an element of inputs", each) for each in paths]


def _object_of(answer: bytes) -> "dict[str, Any] | None":
    """The last line that a program printed. None if it printed nothing, or was killed while it did."""
    with contextlib.suppress(ValueError, IndexError):
        return json.loads(answer.splitlines()[-1])  # type: ignore[no-any-return]
    return None


def _error_of(program: str, found: "dict[str, Any] | None", text: str) -> Error:
    """The exception for a program that failed. It prints its error as JSON unless it was killed."""
    if found is None or "error" not in found:
        return Error(text.strip() or f"{program} failed")
    told = found["error"]
    message, kind = told["message"], told["kind"]
    if kind in ("usage", "config"):
        return ConfigError(message)
    if kind == "format":
        return FormatError(message)
    if kind == "io":
        return IOError(told["errno"], message.removeprefix(told["file"] + ": "), told["file"] or None)
    return Error(message)


def _report(reading: int, process: "subprocess.Popen[bytes]", progress: "Callable[[dict[str, Any]], None]") -> None:
    """Passes on the lines of a pipe until the program has ended. The pipe may stay open longer: another thread
    may have forked a process meanwhile, which has the pipe, too."""
    os.set_blocking(reading, False)
    kept = b""
    ended = False
    while not ended:
        ended = process.poll() is not None
        while select.select([reading], [], [], 0 if ended else 0.1)[0]:
            block = os.read(reading, 1 << 16)
            *lines, kept = (kept + block).split(b"\n")
            for line in lines:
                found = _object_of(line)
                if found is not None:
                    progress(found)
            if not block:
                return


def _run(program: str, arguments: "list[str]",
         progress: "Callable[[dict[str, Any]], None] | None" = None,
         done: "tuple[int, ...]" = (DONE,)) -> "dict[str, Any]":
    """Runs a program with --json and returns what it prints."""
    for flag in ("--help", "--version", "--json", "--metrics", "--dry-run", "--document"):
        if flag in arguments:
            raise ConfigError(f"{flag} is for the command line: the function reads what the program prints")
    command = [os.fspath(FOLDER / program), *arguments, "--json"]
    reading: "int | None" = None
    passed: "tuple[int, ...]" = ()
    if progress is not None:
        reading, writing = os.pipe()
        command += ["--metrics", f"/dev/fd/{writing}"]
        passed = (writing,)
    try:
        started = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   pass_fds=passed)
    except OSError as e:
        for each in (*passed, *(() if reading is None else (reading,))):
            os.close(each)
        raise IOError(e.errno, f"the program cannot be started: {e.strerror}", command[0]) from None
    with started as process:
        out: "list[bytes]" = []
        errors: "list[bytes]" = []
        assert process.stdout is not None and process.stderr is not None
        readers = [threading.Thread(target=lambda f=f, to=to: to.append(f.read()), daemon=True)
                   for f, to in ((process.stdout, out), (process.stderr, errors))]
        for each in readers:
            each.start()
        try:
            if reading is not None and progress is not None:
                os.close(passed[0])
                try:
                    _report(reading, process, progress)
                finally:
                    os.close(reading)
            code = process.wait()
        except BaseException:
            # Ctrl-C reaches the program, too, if it is in the same foreground group; an exception of
            # `progress` does not. The program then keeps what is finished.
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)
            process.wait()
            raise
        for each in readers:
            each.join()
    text = b"".join(errors).decode("utf-8", "surrogateescape")
    answer = b"".join(out)
    found = _object_of(answer)
    if code in done and found is not None and "error" not in found:
        return found
    again = "; call it again with resume=True to continue" if program == "preprocess_data" else ""
    if code == STOPPED:
        raise Error(f"{text.strip()}\n{program} was stopped by a signal{again}")
    if code < 0:
        raise Error(f"{program} was killed by signal {-code}{again}")
    raise _error_of(program, found, text)


def _tokenizer_flags(tokenizer: "Path | None") -> "dict[str, Any]":
    """The flags for the file or folder of a tokenizer, or for the name of a type that needs no file."""
    if tokenizer is None:
        return {}
    name = check.path("tokenizer", tokenizer)
    if name.endswith("Tokenizer") and not os.path.exists(name):
        return {"tokenizer_type": name}
    kind = _core._tokenizer_type(name) or "HuggingFaceTokenizer"  # the latter of a folder
    if kind == "GPT2BPETokenizer":
        merges = os.path.join(os.path.dirname(name), "merges.txt")
        return {"tokenizer_type": kind, "vocab_file": name, "merge_file": merges}
    return {"tokenizer_type": kind, "tokenizer_model": name}


def preprocess(inputs: "Path | Sequence[Path]", output_prefix: Path, *, tokenizer: "Path | None" = None,
               progress: "Callable[[dict[str, Any]], None] | None" = None, **flags: Any) -> Preprocessed:
    """Tokenizes JSON lines into Megatron's `.bin` and `.idx` files.

    Args:
      inputs: files, quoted patterns or folders, plain or compressed.
      output_prefix: the outputs are OUTPUT_PREFIX_KEY_document.bin and .idx.
      tokenizer: a tokenizer.json or its folder, a SentencePiece `.model`, a `vocab.json` with `merges.txt`
        beside it, a `.tiktoken` file; or the name of a type without files, such as "ByteLevelTokenizer".
      progress: called about once per second with the metrics of the run.
      flags: flags of `preprocess_data` with underscores: `append_eod=True`, `workers=8`,
        `json_keys=["text"]`, `resume=True`. `millrace-preprocess --help all` lists them. Messages name
        them as the program does, e.g. --append-eod.

    Raises:
      ConfigError: a flag is wrong; nothing was written.
      IOError: a file cannot be read or written.
      FormatError: a file of the tokenizer or an input is damaged.
      Error: the run failed for another reason.
      After an error, the finished work is kept: call it again with `resume=True`.
    """
    for name in ("input", "output_prefix"):
        if name in flags:
            raise TypeError(f"{name} is given twice: it is an argument of the function")
    words = ["--input", *_listed(inputs), "--output-prefix", os.fspath(output_prefix),
             *_words({**_tokenizer_flags(tokenizer), **flags})]
    found = _run("preprocess_data", words, progress)
    return _taken(Preprocessed, found, outputs=[_taken(Output, each) for each in found["outputs"]], details=found)


def merge(folder: Path, output_prefix: Path, **flags: Any) -> Merged:
    """Concatenates all datasets of a folder, sorted by name, into OUTPUT_PREFIX.bin and .idx.

    `flags` are those of `merge_datasets` with underscores, e.g. `shuffle_documents=1234`.
    """
    found = _run("merge_datasets", ["--input", os.fspath(folder), "--output-prefix", os.fspath(output_prefix),
                                    *_words(flags)])
    return _taken(Merged, found, details=found)


def verify(prefix: Path, *, vocab_size: "int | None" = None, workers: "int | None" = None) -> Verified:
    """Checks a dataset and its sidecar files, and returns what it contains.

    Args:
      prefix: the path of one dataset, without .bin and .idx.
      vocab_size: read all tokens; each must be 0 to vocab_size - 1.
      workers: number of threads; by default one per core.

    Raises:
      FormatError: the dataset is damaged. The message names the file, the byte and the fault.
      IOError: a file cannot be read.
    """
    found = _run("inspect_dataset", ["verify", os.fspath(prefix), *_words({"vocab_size": vocab_size, "workers": workers})],
                 done=(DONE, FAILED))
    if "datasets" in found:
        raise ConfigError(f"{os.fspath(prefix)}: expected one dataset, found {len(found['datasets'])}; verify each of them: "
                          + ", ".join(each["prefix"] for each in found["datasets"][:4]))
    fault = found.get("fault")
    if fault is not None:
        raise FormatError(f"{fault['file']}: {fault['what']} (at byte {fault['offset_bytes']})")
    return _taken(Verified, found, details=found)


def repair(prefix: Path, what: str = "pointers") -> Repaired:
    """Writes a repaired file beside those of a dataset, and changes none of them.

    Args:
      prefix: the path of one dataset, without .bin and .idx.
      what: "pointers" writes PREFIX.idx.repaired, with pointers that follow from the lengths, if all else is valid.
        "checksums" writes PREFIX.sum.repaired, with the checksums of what the files hold now, and PREFIX.meta.repaired
        if there is a PREFIX.meta with another root.

    Raises:
      FormatError: something else is damaged, so that a repair would have to guess; nothing was written.
      IOError: a file cannot be read or written.
    """
    found = _run("inspect_dataset", ["verify", os.fspath(prefix), "--repair", what])
    return Repaired(file=found["repaired"], changed=found[f"{what}_changed"], proven=found["proven"], details=found)


def info(prefix: Path, **flags: Any) -> Info:
    """Says what a dataset holds, from its index and its `.meta`.

    Args:
      prefix: the path of one dataset, without .bin and .idx.
      flags: flags of `inspect_dataset info` with underscores: with `seq_length=4096`, and `split="98,2,0"` etc.,
        `details["megatron"]` says what Megatron makes of it.

    Raises:
      ConfigError: a flag is wrong.
      IOError, FormatError: the dataset cannot be read or is damaged.
    """
    found = _run("inspect_dataset", ["info", os.fspath(prefix), *_words(flags)])
    if "datasets" in found:
        raise ConfigError(f"{os.fspath(prefix)}: expected one dataset, found {len(found['datasets'])}")
    return _taken(Info, found, details=found)


def where(data_path: "Path | Sequence[Path | float]", **flags: Any) -> "list[Slot]":
    """Says which documents a rank gets in a step, row by row.

    `flags` are those of `inspect_dataset where` with underscores: `order="megatron"`, `seq_length=4096`,
    `train_samples=1000000`, `step=123`, `rank=7`, `ranks=64`, ...
    """
    found = _run("inspect_dataset", ["where", *_words({"data_path": check.words("data_path", data_path), **flags})])
    return [_taken(Slot, each, documents=[_taken(Piece, one) for one in each["documents"]])
            for each in found.get("slots", [found])]  # with slot=, the program prints that slot alone


def audit(data_path: "Path | Sequence[Path | float]", **flags: Any) -> Audit:
    """Counts how often the steps of a run serve each token. `flags` as in `where`."""
    found = _run("inspect_dataset", ["audit", *_words({"data_path": check.words("data_path", data_path), **flags})],
                 done=(DONE, FAILED))
    return _taken(Audit, found, ledgers=[_taken(Ledger, each) for each in found["ledgers"]])


def plan(data_path: "Path | Sequence[Path | float]", *, step_seconds: float, **flags: Any) -> Plan:
    """Computes what a run needs from the machines of a cluster.

    Args:
      data_path: the words of Megatron's --data-path.
      step_seconds: time of a training step.
      flags: flags of `inspect_dataset plan` with underscores: those of a run, as in `where`, and `nodes=4`,
        `gpus_per_node=8`, `tensor_model_parallel_size=2`, `probe="/mnt/data"`, `checkpoint_seconds=60`,
        `mtbf_hours=24`, ...

    Raises:
      ConfigError: a flag is wrong, or the layout is impossible.
      IOError, FormatError: a dataset or the storage to measure cannot be read.
    """
    found = _run("inspect_dataset", ["plan", *_words({"data_path": check.words("data_path", data_path),
                                                      "step_seconds": step_seconds, **flags})])
    return _taken(Plan, found, data=[_taken(PlannedData, each) for each in found["data"]], details=found)


def search(data_path: "Path | Sequence[Path | float]", *, text: "str | Sequence[str] | None" = None,
           ids: "Sequence[int] | Sequence[Sequence[int]] | None" = None, regex: "str | None" = None,
           tokenizer: "Path | None" = None, **flags: Any) -> Found:
    """Finds texts, sequences of ids, or a regular expression in documents.

    Args:
      data_path: prefixes, folders or patterns of datasets, or the words of Megatron's --data-path.
      text: one text or several, searched in what the tokenizer makes of whole documents.
      ids: one sequence of ids or several.
      regex: a regular expression of PCRE2.
      tokenizer: as for `preprocess`; not needed for ids, or if the dataset's tokenizer needs no files.
      flags: flags of `inspect_dataset search` with underscores: `hits=100`, `context=0`, `workers=2`,
        `texts_from="queries.txt"`; with `order=` and the other flags of a run, `Place.served` says which
        slots served each place.

    Raises:
      ConfigError: a flag is wrong, or the tokenizer is unknown.
      IOError, FormatError: a dataset cannot be read or is damaged.
    """
    sequences: "list[str] | None" = None
    if ids is not None:
        listed = list(ids)
        nested = [each for each in listed if isinstance(each, Iterable)]
        if len(nested) not in (0, len(listed)):
            raise TypeError(f"ids is {ids!r}, expected integers or sequences of integers")
        sequences = [" ".join(str(int(one)) for one in each) for each in (nested or [listed])]
    texts = [text] if isinstance(text, str) else None if text is None else list(text)
    words = [str(each) for each in check.words("data_path", data_path)]
    for flag, values in (("--text", texts), ("--ids", sequences), ("--regex", None if regex is None else [regex])):
        words += [f"{flag}={value}" for value in values or ()]
    words += _words({**_tokenizer_flags(tokenizer), **flags})
    found = _run("inspect_dataset", ["search", *words], done=(DONE, FAILED))
    return _taken(Found, found, queries=[_taken(Query, each) for each in found["queries"]],
                  places=[_taken(Place, each) for each in found["places"]])


def stats(data_path: "Path | Sequence[Path | float]", *, duplicates: bool = False, near_duplicates: bool = False,
          top_ngrams: "int | None" = None, ngram: "int | None" = None, contamination: "Sequence[Path] | None" = None,
          tokenizer: "Path | None" = None, **flags: Any) -> Statistics:
    """Counts documents, tokens, ids and lengths of datasets of one tokenizer.

    Args:
      data_path: prefixes, folders or patterns of datasets, or the words of Megatron's --data-path.
      duplicates: find documents with exactly the same ids.
      near_duplicates: find documents that share most of their 5-grams of ids, by MinHash.
      top_ngrams: find so many of the sequences of ids that occur most often inside documents.
      ngram: ids per sequence; 13 by default.
      contamination: find documents that share at least one 13-gram of ids with these texts: lines of files, the
        "text" of .jsonl files, documents of datasets.
      tokenizer: as for `preprocess`; without it there is no text, unless the dataset's tokenizer needs no files.
      flags: flags of `inspect_dataset stats` with underscores: `top=100`, `vocab_size=50257`,
        `frequencies="ids.tsv"`, `groups=3`, `similarity=0.9`, `contamination_ngram=8`, `workers=2`.

    Raises:
      ConfigError: a flag is wrong, or the datasets have different tokenizers.
      IOError, FormatError: a dataset cannot be read or is damaged.
    """
    words = [str(each) for each in check.words("data_path", data_path)]
    words += _words({"duplicates": duplicates, "near_duplicates": near_duplicates, "top_ngrams": top_ngrams,
                     "ngram": ngram, "contamination": contamination, **_tokenizer_flags(tokenizer), **flags})
    return _taken(Statistics, _run("inspect_dataset", ["stats", *words]))


def report(prefix: "Path | Sequence[Path]", output: Path, *, tokenizer: "Path | None" = None, **flags: Any) -> str:
    """Writes one HTML page about a dataset, or about two side by side, and returns its path.

    Args:
      prefix: one dataset or two.
      output: the page, e.g. "web.html"; replaced if it exists.
      tokenizer: as for `preprocess`; without it there is no text, unless the dataset's tokenizer needs no files.
      flags: flags of `inspect_dataset report` with underscores: `verify=True`, `documents=50`, `redact=True`;
        with `order=` and the other flags of a run, the page also says what the run serves.

    Raises:
      ConfigError: a flag is wrong.
      FormatError: a dataset is damaged.
      IOError: a file cannot be read or written.
    """
    words = [str(each) for each in check.words("prefix", prefix)]
    words += _words({"output": output, **_tokenizer_flags(tokenizer), **flags})
    return str(_run("inspect_dataset", ["report", *words])["output"])
def convert(inputs: "Path | Sequence[Path]", output_prefix: Path, *, to: str = "megatron",
            format: "str | None" = None, **flags: Any) -> Converted:  # noqa: A002
    """Converts datasets from and to the token files of other programs. Keeps all tokens.

    Args:
      inputs: the prefix of a dataset; or files in one format, which are joined in this order; or a folder of
        packed Parquet files of Megatron-Bridge.
      output_prefix: path of the new files, without their endings.
      to: "megatron", "nanoset", "olmo", "llm.c", "nanogpt" or "bridge", packed rows for Megatron-Bridge.
      format: the format of the inputs, required for "olmo" and "nanogpt".
      flags: flags of `inspect_dataset convert` with underscores: `dtype="uint16"`, `eod_id=50256`,
        `boundaries="ends.txt"`, `shard_tokens=100000000`, `lossy=True`, `overwrite=True`; for "bridge"
        `seq_length=4096`, `packing="first_fit_shuffle"`, `seed=0`, `pad_documents_to=8`.

    Raises:
      ConfigError: a flag is wrong or missing, a file exists, or something would be lost; nothing was written.
      IOError, FormatError: an input cannot be read or is damaged, or has an id that does not fit.
    """
    found = _run("inspect_dataset", ["convert", *_listed(inputs), "--output-prefix", os.fspath(output_prefix),
                                     *_words({"to": to, "from": format, **flags})])
    return _taken(Converted, found, details=found)


def diff(a: Path, b: Path, **flags: Any) -> Difference:
    """Compares two datasets, or two saved states (JSON files).

    Datasets are the same if they have the same documents in the same order; their types may differ.
    `Difference.details` has the first difference, and the documents that only one of them has.

    Args:
      a, b: prefixes of datasets, without .bin and .idx, or paths of states.
      flags: flags of `inspect_dataset diff` with underscores: `list=100`, `context=0`, `workers=2`.

    Raises:
      ConfigError: a flag is wrong, or the two cannot be compared.
      IOError, FormatError: a file cannot be read or is damaged.
    """
    found = _run("inspect_dataset", ["diff", os.fspath(a), os.fspath(b), *_words(flags)], done=(DONE, FAILED))
    return _taken(Difference, found, details=found)


def diff_runs(data_path: "Path | Sequence[Path | float]", changes: "dict[str, Any]", **flags: Any) -> Difference:
    """Compares what a run serves with what it serves if some of its flags change.

    Runs are the same if every step consists of the same samples in the same order. It does not matter
    which rank serves a sample.

    Args:
      changes: flags that replace those of the run, e.g. `{"ranks": 48}`.
      flags: flags of the run, as in `where`; and `list=100`, `workers=2`.

    Raises:
      as `diff`
    """
    words = _words({"data_path": check.words("data_path", data_path), **flags})
    if "data_path" in changes:
        changes = {**changes, "data_path": check.words("data_path", changes["data_path"])}
    found = _run("inspect_dataset", ["diff", *words, "--", *_words(changes)], done=(DONE, FAILED))
    return _taken(Difference, found, details=found)


def filter(prefix: Path, output_prefix: Path, *,  # noqa: A001
           keep: "Iterable[int] | None" = None, drop: "Iterable[int] | None" = None, duplicates: bool = False,
           **flags: Any) -> Filtered:
    """Writes some documents of a dataset as a new one, with their places in the inputs and checksums.

    Args:
      output_prefix: path of the new dataset, without .bin and .idx.
      keep: numbers of the documents to keep; or
      drop: numbers of the documents to leave out; or
      duplicates: leave out documents that are equal to an earlier one.
      flags: flags of `inspect_dataset filter` with underscores: `overwrite=True`, `workers=2`.

    Raises:
      ConfigError: a flag is wrong, a document does not exist, none is kept, or the new dataset exists.
      IOError, FormatError: a file cannot be read or written, or is damaged.
    """
    if (keep is not None) + (drop is not None) + bool(duplicates) != 1:
        raise TypeError("pass one of keep, drop and duplicates")
    words = [os.fspath(prefix), *_words({"output_prefix": output_prefix, "duplicates": duplicates, **flags})]
    if duplicates:
        return _taken(Filtered, _run("inspect_dataset", ["filter", *words]))
    listed = drop if keep is None else keep
    assert listed is not None
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:  # a command line has not enough room
        file.write("\n".join(str(int(each)) for each in listed))
        file.flush()
        words += ["--drop" if keep is None else "--keep", "--documents", file.name]
        return _taken(Filtered, _run("inspect_dataset", ["filter", *words]))
