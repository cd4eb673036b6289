# SPDX-License-Identifier: Apache-2.0
"""Trains tiny SentencePiece models on the sample corpus; writes cases with the reference's answers.

usage: generate.py

Writes bpe.model, unigram.model, suffix.model and cases.jsonl into this folder. Needs the package
`sentencepiece` (0.2.2 or later); exits 77 without it. Another release may train other models, so
this script has no --check.
"""

import io
import json
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tiny_bpe"))
import adversarial  # noqa: E402

CORPUS = HERE.parents[2] / "scripts" / "sample" / "corpus.jsonl"
# A few of the NFKC and white space rules. The whole table would take 200 KB.
RULES = [
    ("09", "20"), ("A0", "20"), ("3000", "20"), ("200B", ""), ("41 300", "C0"), ("65 301", "E9"),
    ("FF21", "41"), ("FB01", "66 69"), ("304B 3099", "304C"), ("2581", "20"), ("2026", "2E 2E 2E"),
]
COMMON = dict(num_threads=1, minloglevel=2, hard_vocab_limit=False)
MODELS = {
    # Like Llama-2: unknown characters become bytes, characters are not normalized, a dummy space
    # comes first.
    "bpe": dict(model_type="bpe", vocab_size=1100, byte_fallback=True, remove_extra_whitespaces=False,
                normalization_rule_name="identity", allow_whitespace_only_pieces=True,
                split_digits=True, character_coverage=0.98),
    # Like T5: text is normalized, spaces are collapsed, each unknown character becomes one id.
    "unigram": dict(model_type="unigram", vocab_size=900, character_coverage=0.98,
                    user_defined_symbols=["<x>", "New York"], pad_id=3),
    # The other options: spaces after words, pieces that contain spaces, no end-of-sentence piece.
    "suffix": dict(model_type="bpe", vocab_size=700, treat_whitespace_as_suffix=True,
                   split_by_whitespace=False, normalization_rule_name="identity", eos_id=-1,
                   user_defined_symbols=["\t", "the\u2581"], character_coverage=0.98),
}


def sample_texts():
    texts = []
    for line in CORPUS.read_text(encoding="utf-8").split("\n")[:-1]:
        value = json.loads(line)["text"]
        texts += value if isinstance(value, list) else [value]
    return texts


def write_model(name, texts):
    import sentencepiece

    options = dict(COMMON, **MODELS[name])
    with tempfile.TemporaryDirectory() as folder:
        if name == "unigram":
            rules = pathlib.Path(folder) / "rules.tsv"
            rules.write_text("".join(f"{a}\t{b}\n" for a, b in RULES), encoding="ascii")
            options["normalization_rule_tsv"] = str(rules)
        written = io.BytesIO()
        lines = [line for text in texts for line in text.split("\n") if line]
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=written, **options
        )
    (HERE / f"{name}.model").write_bytes(written.getvalue())


def write_cases(texts):
    import sentencepiece

    extra = ["a  b", "  a", "a  ", " ", "\u2581", "a\u2581b", "<s>", "</s><unk>", "<0x41>", "the the",
             "New York", "NewYork", "x<x>y", "\t", "a\tb", "A\u0300e\u0301\uff21\ufb01", "か\u3099"]
    with open(HERE / "cases.jsonl", "w", encoding="ascii", newline="\n") as stream:
        for name in MODELS:
            processor = sentencepiece.SentencePieceProcessor(model_file=str(HERE / f"{name}.model"))
            for text in texts[::12] + extra + adversarial.strings()[::6]:
                ids = processor.encode(text)
                case = {"model": name, "text": text, "ids": ids, "decoded": processor.decode(ids)}
                stream.write(json.dumps(case, separators=(",", ":")) + "\n")


def main():
    try:
        import sentencepiece  # noqa: F401
    except ImportError as error:
        print(f"skipped: sentencepiece is not installed ({error})", file=sys.stderr)
        return 77
    texts = sample_texts()
    for name in MODELS:
        write_model(name, texts)
    write_cases(texts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
