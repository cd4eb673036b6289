# SPDX-License-Identifier: Apache-2.0
# --tokenizer-cache changes no byte of the output, and a run may resume with or without it. A folder
# that cannot be used is a note. inspect_dataset reads the same files.
golden=$CASE_DIR/../../golden/tiny_bpe
for i in $(seq 1000); do echo "{\"text\": \"The document $i of many\"}"; done > in.jsonl
flags=(--tokenizer-type GPT2BPETokenizer --vocab-file "$golden/vocab.json"
  --merge-file "$golden/merges.txt")
same() { for suffix in bin idx meta src sum; do cmp {whole,out}_text_document.$suffix; done; }
run() { preprocess_data --input in.jsonl --output-prefix out "${flags[@]}" "$@" 2> log; }
preprocess_data --input in.jsonl --output-prefix whole "${flags[@]}" 2> log
for way in writes reads; do
  run --overwrite --tokenizer-cache cache
  same
  grep -c 'tokenizer-cache' log || echo "$way the cache without a note"
  ls cache | sed 's/^[0-9a-f]\{64\}/KEY/'
done
stat -c '%a %n' cache cache/* | sed 's/[0-9a-f]\{64\}/KEY/'

export MILLRACE_TEST_BLOCK_BYTES=5000 MILLRACE_TEST_CHECKPOINT_MS=0
begin() { (MILLRACE_TEST_KILL_AT=5 run --overwrite "$@" || echo "killed: $?") 2> killed; }
begin
run --resume --tokenizer-cache cache
same
begin --tokenizer-cache cache
run --resume
same

run --overwrite --tokenizer-cache no/such/folder
same
grep -o 'note: .*' log
inspect_dataset show whole_text_document --doc 6 --tokenizer-cache cache "${flags[@]}"
preprocess_data --input in.jsonl --output-prefix out --tokenizer-cache cache 2>&1 || echo "misuse: $?"
