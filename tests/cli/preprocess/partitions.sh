# SPDX-License-Identifier: Apache-2.0
# The order of documents is that of Megatron's --partitions. The sidecars match this order.
mkdir in
printf '{"text": "zero"}\r\n\n{"text": "two"}\nno JSON\n{"text": "four"}' > in/a.jsonl
printf '\xEF\xBB\xBF{"text": "five"}\n{"text": "six"}\n' | gzip > in/b.jsonl.gz
preprocess() {
  preprocess_bytes --input in --output-prefix "$@" --workers 2 --on-bad-record quarantine 2> log
}
shown() {
  for doc in 0 1 2 3 4; do
    inspect_dataset show "$1_text_document" --doc $doc --tokenizer-type ByteLevelTokenizer |
      grep -e '"' -e jsonl
  done
}
preprocess two --partitions 2
grep -F 'joining 2 partitions' log
shown two
inspect_dataset verify two_text_document | tail -n 1
grep -o '"--partitions": "2"' two_text_document.meta
grep -c . two_text_document.bad

preprocess plain
preprocess same --partitions 3 --keep-sequential-samples
for file in plain_*; do cmp "$file" "same${file#plain}"; done
cat in/a.jsonl <(echo) <(gzip -dc in/b.jsonl.gz | tail -c +4) |
  preprocess_bytes --input - --output-prefix pipe --partitions 2 --on-bad-record skip 2> log
cmp two_text_document.bin pipe_text_document.bin
cmp two_text_document.idx pipe_text_document.idx
preprocess three --partitions 3 --resume
preprocess three --partitions 3 --resume
grep 'already complete' log
preprocess_bytes --input in --output-prefix out --partitions 3 --dry-run | tail -n 1

misuse() {
  local status=0
  preprocess_bytes --input in --output-prefix out "$@" 2> log || status=$?
  echo "= $status: $(head -n 1 log)"
}
misuse --partitions 0
misuse --partitions 1025
misuse --partitions 2 --task 0/2
preprocess_bytes --input in --output-prefix out --partitions 2 --task 0/2 \
  --keep-sequential-samples --on-bad-record skip 2> log
(ulimit -n 300 && misuse --partitions 100)
test -z "$(compgen -G '*.partial' || true)"
