# SPDX-License-Identifier: Apache-2.0
# Without a tokenizer, nothing is written; a default tokenizer for bytes would be a silent mistake.
# Every summary names the tokenizer.
echo '{"text": "a b"}' > in.jsonl
preprocess_data --input in.jsonl --output-prefix out || echo "= $?" >&2
preprocess_data --input in.jsonl --output-prefix out --dry-run || echo "= $?" >&2
test "$(echo *)" = in.jsonl
tiny=$CASE_DIR/../../golden/tiny_bpe
cp "$tiny/vocab.json" "$tiny/merges.txt" .
gpt2=(--tokenizer-type GPT2BPETokenizer --vocab-file vocab.json --merge-file merges.txt)
preprocess_data --input in.jsonl --output-prefix out "${gpt2[@]}" --json > summary 2> log
grep '^tokenizer' log
grep -o '"tokenizer_type.*merges.txt"]' summary
preprocess_data --input in.jsonl --output-prefix out "${gpt2[@]}" --resume 2>&1 | grep '^tokenizer'
preprocess_data --input in.jsonl --output-prefix out "${gpt2[@]}" --dry-run | grep '^tokenizer'
preprocess_bytes --input in.jsonl --output-prefix bytes 2>&1 | grep '^tokenizer'
