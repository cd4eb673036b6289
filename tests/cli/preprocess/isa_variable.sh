# SPDX-License-Identifier: Apache-2.0
# MILLRACE_ISA chooses the instruction set of the tokenizers, which changes no id.
printf '{"text": "Hello, world: to be, or not to be, that is the question (of many)."}\n' > in.jsonl
gpt2() {
  preprocess_data --input in.jsonl --tokenizer-type GPT2BPETokenizer --output-prefix "$1" \
    --vocab-file "$CASE_DIR/../../golden/tiny_bpe/vocab.json" \
    --merge-file "$CASE_DIR/../../golden/tiny_bpe/merges.txt"
}
status=0
MILLRACE_ISA=avx1024 gpt2 wrong || status=$?
echo "= $status" >&2
gpt2 any 2> log
for set in '' portable; do
  MILLRACE_ISA=$set gpt2 "one$set" 2> log
  cmp any_text_document.bin "one${set}_text_document.bin"
done
test ! -e wrong_text_document.bin
