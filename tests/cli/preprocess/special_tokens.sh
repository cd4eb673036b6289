# SPDX-License-Identifier: Apache-2.0
# A special token in a text becomes its id, is encoded as text, or makes the record bad. The ids are
# counted.
golden=$CASE_DIR/../../golden/tiny_ranks
echo '{"text": "a </s> b"}' > in.jsonl
run() {
  local status=0
  preprocess_data --input in.jsonl --output-prefix out --overwrite --json \
    --tokenizer-type TikTokenizer "$@" > summary 2> errors || status=$?
  if ((status == 0)); then
    sed 's/^[^,]*, \("tokens": [0-9]*\).*\("special_tokens": [0-9]*\).*/\1 \2/' summary
    grep 'special token' errors || true
  else
    sed "s/^/$status: /" errors
  fi
}
megatron=(--tokenizer-model "$golden/tiny.vocab.json" --vocab-size 623
  --tiktoken-num-special-tokens 20)
run "${megatron[@]}"
run "${megatron[@]}" --special-tokens-in-text allow
run "${megatron[@]}" --special-tokens-in-text encode-as-text
run "${megatron[@]}" --special-tokens-in-text error
run "${megatron[@]}" --special-tokens-in-text error --on-bad-record skip
ranks=(--tokenizer-model "$golden/tiny.tiktoken" --tiktoken-pattern cl100k
  --tokenizer-special-tokens '</s>' '<x>')
run "${ranks[@]}"
run "${ranks[@]}" --special-tokens-in-text allow
run "${ranks[@]}" --append-eod
run "${ranks[@]}" --append-eod --eod-token '</s>'
run "${ranks[@]}" --append-eod --eod-token '<eos>'
