# SPDX-License-Identifier: Apache-2.0
# A flag that the tokenizer does not support is refused with the reason, unless Megatron accepts it
# without using it (unused_flags.sh).
golden=$CASE_DIR/../../golden
echo '{"text": "a"}' > in.jsonl
misuse() {
  local status=0
  preprocess_data --input in.jsonl --output-prefix out "$@" 2>&1 | head -1 >&2 || status=$?
  echo "= $status" >&2
}
misuse --tokenizer-type MultimodalTokenizer
misuse --tokenizer-type NullMultimodalTokenizer
misuse --tokenizer-type SFTTokenizer
misuse --tokenizer-type HuggingFaceTokenizer --tokenizer-model m --tokenizer-hf-no-use-fast
misuse --tokenizer-type HuggingFaceTokenizer --tokenizer-model m --trust-remote-code
misuse --tokenizer-type SentencePieceTokenizer --tokenizer-model m --tokenizer-sentencepiece-legacy
misuse --tokenizer-type TikTokenizer
misuse --tokenizer-type TikTokenizer --tokenizer-model "$golden/tiny_ranks/tiny.tiktoken"
misuse --tokenizer-type TikTokenizer --tokenizer-model "$golden/tiny_ranks/tiny.tiktoken" \
  --tiktoken-pattern gpt4 --tokenizer-special-tokens '<s>'
misuse --tokenizer-type TikTokenizer --tokenizer-model "$golden/tiny_ranks/tiny.vocab.json" \
  --tiktoken-pattern v3
misuse --tokenizer-type TikTokenizer --tokenizer-model m --special-tokens-in-text ignore
misuse --tokenizer-type NullTokenizer --vocab-size 100 --null-tokenizer-eod-id 100
misuse --tokenizer-type NullTokenizer --vocab-size 100 --eod-token 7
misuse --tokenizer-type ByteLevelTokenizer --tiktoken-pattern v1
misuse --special-tokens-in-text allow
misuse --null-tokenizer-pad-id -1
test ! -e out_text_document.bin
