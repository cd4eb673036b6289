# SPDX-License-Identifier: Apache-2.0
# If a file is not a rank vocabulary, or not the one for the given pattern, the message names the
# file, the place and the reason.
golden=$CASE_DIR/../../golden/tiny_ranks
echo '{"text": "a"}' > in.jsonl
fails() {
  local status=0
  preprocess_data --input in.jsonl --output-prefix out --tokenizer-type TikTokenizer "$@" ||
    status=$?
  echo "= $status" >&2
}
cp "$golden/tiny.tiktoken" "$golden/tiny.vocab.json" .
fails --tokenizer-model none.tiktoken --tiktoken-pattern cl100k
fails --tokenizer-model tiny.tiktoken --tiktoken-pattern cl100k
head -c 1000 tiny.tiktoken > cut.tiktoken
fails --tokenizer-model cut.tiktoken --tiktoken-pattern cl100k --tokenizer-special-tokens '<s>'
{ cat tiny.tiktoken; echo 'AAE= 5'; } > twice.tiktoken
fails --tokenizer-model twice.tiktoken --tiktoken-pattern cl100k --tokenizer-special-tokens '<s>'
echo 'a file of text' > text.tiktoken
fails --tokenizer-model text.tiktoken --tiktoken-pattern cl100k
fails --tokenizer-model tiny.vocab.json
head -c 1000 tiny.vocab.json > cut.vocab.json
fails --tokenizer-model cut.vocab.json
cp "$golden/../tiny_bpe/vocab.json" gpt2.json
fails --tokenizer-model gpt2.json
test ! -e out_text_document.bin
