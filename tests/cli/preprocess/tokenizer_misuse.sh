# SPDX-License-Identifier: Apache-2.0
# Tokenizer files without a tokenizer type are refused. Otherwise, the user would get bytes as
# tokens.
echo '{"text": "a"}' > in.jsonl
touch vocab.json merges.txt
misuse() {
  local status=0
  preprocess_data --input in.jsonl --output-prefix out "$@" || status=$?
  echo "= $status: ${*@Q}" >&2
}
misuse --vocab-file vocab.json --merge-file merges.txt
misuse --merge-file merges.txt
misuse --tokenizer-model model
misuse --vocab-size 1000
misuse --tokenizer-type NoSuchTokenizer
misuse --tokenizer-type GPT2BPETokenizer
misuse --tokenizer-type GPT2BPETokenizer --vocab-file vocab.json
misuse --tokenizer-type NullTokenizer
misuse --tokenizer-type NullTokenizer --vocab-size 0
misuse --tokenizer-type NullTokenizer --vocab-size -5
misuse --tokenizer-type NullTokenizer --vocab-size many
misuse --tokenizer-type ByteLevelTokenizer --vocab-file vocab.json
test ! -e out_text_document.bin
