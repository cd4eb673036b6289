# SPDX-License-Identifier: Apache-2.0
# Tokenizer files that are missing or have another format fail with the name of the file.
echo '{"text": "a"}' > in.jsonl
fails() {
  local status=0
  preprocess_data --input in.jsonl --output-prefix out --tokenizer-type GPT2BPETokenizer "$@" ||
    status=$?
  echo "= $status" >&2
}
golden=$CASE_DIR/../../golden/tiny_bpe
cp "$golden/vocab.json" "$golden/merges.txt" .
fails --vocab-file none.json --merge-file merges.txt
fails --vocab-file vocab.json --merge-file none.txt
fails --vocab-file merges.txt --merge-file merges.txt
fails --vocab-file vocab.json --merge-file vocab.json
fails --vocab-file . --merge-file merges.txt
head -c 1000 vocab.json > half.json
fails --vocab-file half.json --merge-file merges.txt
test ! -e out_text_document.bin
