# SPDX-License-Identifier: Apache-2.0
# Flags that Megatron accepts without using them get one note, and the output is as without them.
golden=$CASE_DIR/../../golden
printf '%s\n' '{"text": "a b"}' '{"text": "c"}' > in.jsonl
run() {
  preprocess_data --input in.jsonl --overwrite "$@" 2>&1 | grep -vE 'MB|^(tokenizer|wrote|slowest)' || true
}
gpt2=(--tokenizer-type GPT2BPETokenizer --vocab-file "$golden/tiny_bpe/vocab.json"
  --merge-file "$golden/tiny_bpe/merges.txt")
run "${gpt2[@]}" --output-prefix plain
run "${gpt2[@]}" --output-prefix noted --vocab-size 50257 --keep-newlines --lang german --max-documents 1 \
  --workers-to-check 4 8 --performance-dir perf --tiktoken-pattern v2 --tiktoken-num-special-tokens 1000 \
  --tokenizer-sentencepiece-legacy --null-tokenizer-pad-id -1 --vocab-extra-ids 100 --tokenizer-model m \
  --padded-vocab-size 50304 --no-pad-vocab-size --use-gigatoken
for suffix in bin idx meta; do cmp "plain_text_document.$suffix" "noted_text_document.$suffix"; done
null=(--tokenizer-type NullTokenizer --vocab-size 100 --on-bad-record skip --dry-run)
run "${null[@]}" --output-prefix other --merge-file m --trust-remote-code --tokenizer-hf-no-use-fast | grep note
# Flags of our own, and those that Megatron does use, are refused where they would have no effect.
run "${gpt2[@]}" --output-prefix other --trust-remote-code | head -1
run --tokenizer-type HuggingFaceTokenizer --tokenizer-model m --vocab-file v --output-prefix other | head -1
run --tokenizer-type NullTokenizer --vocab-size 9 --eod-token x --output-prefix other | head -1
run --tokenizer-type ByteLevelTokenizer --vocab-size 512 --output-prefix other | head -1
test ! -e perf
test "$(echo other*)" = 'other*'
