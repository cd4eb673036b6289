# SPDX-License-Identifier: Apache-2.0
# --drop-duplicates keeps the first of equal documents, and says where the others came from.
if preprocess_data --version | grep -q 'without xxHash'; then
  echo 'needs a build with xxHash' >&2
  exit 77
fi
printf '{"text": "a"}\n{"text": "bc"}\n{"text": "a"}\n' > in.jsonl
run() { preprocess_data --tokenizer-type ByteLevelTokenizer "$@" 2>&1; }
run --input in.jsonl --output-prefix out --drop-duplicates ids | grep -E 'documents|duplicate'
cmp out_text_document.duplicates "$CASE_DIR/../../golden/sidecars/third_line.duplicates"
inspect_dataset verify out_text_document
grep -o '"options": {[^}]*}' out_text_document.meta
grep -o '"not_sampled.*"bad\|"duplicates": [0-9]*' out_text_document.meta
# By text, what the tokenizer makes equal stays.
{ cat in.jsonl; echo '{"text": "A"}'; echo; echo 'no JSON'; echo '{"text": ["a"]}'; } > more.jsonl
lower() {
  printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##c\n' > vocab.txt
  preprocess_data --tokenizer-type BertWordPieceLowerCase --vocab-file vocab.txt --input more.jsonl \
    --on-bad-record skip --json "$@" 2> /dev/null | grep -o '"documents": [0-9]*, "tokens": [0-9]*\|"duplicates": [0-9]*'
}
lower --output-prefix lower --drop-duplicates ids
lower --output-prefix lower_text --drop-duplicates text
lower --output-prefix lower_all
# Only the documents that stay count as tokens.
run --input in.jsonl more.jsonl --on-bad-record skip --output-prefix cut --drop-duplicates text --max-tokens 3 |
  grep -E 'documents|duplicate|max-tokens'
run --input in.jsonl --output-prefix one --json-keys text --no-provenance --drop-duplicates ids --memory 1 | grep -E 'dropped|wrote'
# A resumed run has nothing to do, unless what it should have written is gone.
run --input in.jsonl --output-prefix out --drop-duplicates ids --resume | head -1
run --input in.jsonl --output-prefix out --drop-duplicates text --resume || echo "status $?"
run --input in.jsonl --output-prefix out --resume || echo "status $?"
rm out_text_document.duplicates
run --input in.jsonl --output-prefix out --drop-duplicates ids --resume || echo "status $?"
run --input in.jsonl --output-prefix out --drop-duplicates ids || echo "status $?"
run --input in.jsonl --output-prefix dry --drop-duplicates ids --dry-run | grep -A2 'drop-duplicates'
for flags in '--drop-duplicates' '--drop-duplicates all' '--drop-duplicates ids --memory 0' '--memory 7' \
  '--drop-duplicates ids --partitions 2' '--drop-duplicates ids --json-keys text title'; do
  run --input in.jsonl --output-prefix bad $flags | head -1 || true
done
preprocess_data --input in.jsonl --output-prefix bad --tokenizer-type HuggingFaceTokenizer \
  --tokenizer-model "$CASE_DIR/../../golden/tiny_chat" --messages-key messages --drop-duplicates text 2>&1 | head -1 || true
ls -A | grep -v '^lower'
