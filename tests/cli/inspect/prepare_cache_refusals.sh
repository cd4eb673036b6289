# SPDX-License-Identifier: Apache-2.0
# Each cache that cannot be prepared gives an error message.
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines.{bin,idx} .
echo '{}' > tokenizer.json
echo '[]' > list.json
echo '{' > broken.json
while read -r line; do
  # shellcheck disable=SC2086  # the words of a command line
  inspect_dataset prepare-cache $line 2> err > out || echo "$?: $(head -n 1 err)"
done << 'LINES'
--seq-length 4
--data-path preprocess_lines --data-cache-path c --tokenizer-description tokenizer.json
--data-path preprocess_lines --seq-length 1 --data-cache-path c --tokenizer-description tokenizer.json
--seq-length 4 --data-cache-path c --tokenizer-description tokenizer.json
--data-path preprocess_lines --seq-length 4 --data-cache-path c --tokenizer-description list.json
--data-path preprocess_lines --seq-length 4 --data-cache-path c --tokenizer-description broken.json
--data-path preprocess_lines --seq-length 4 --data-cache-path c --tokenizer-description none.json
--data-path none --seq-length 4 --data-cache-path c --tokenizer-description tokenizer.json
--data-path preprocess_lines --seq-length 4 --split 1.2.3 --data-cache-path c --tokenizer-description tokenizer.json
--data-path preprocess_lines --seq-length 4 --split 0,0 --data-cache-path c --tokenizer-description tokenizer.json
--data-path preprocess_lines --seq-length 4 --seed -1 --data-cache-path c --tokenizer-description tokenizer.json
--data-path preprocess_lines --seq-length 4 --seed 4294967296 --data-cache-path c --tokenizer-description tokenizer.json
--data-path preprocess_lines --seq-length 4 --threads 3 --data-cache-path c --tokenizer-description tokenizer.json
--data-path preprocess_lines --seq-length 4 --train-samples -2 --data-cache-path c --tokenizer-description tokenizer.json
--data-path preprocess_lines --seq-length 4 --test-samples 7 --data-cache-path c --tokenizer-description tokenizer.json
--data-path preprocess_lines --seq-length 4000 --split 1 --data-cache-path c --tokenizer-description tokenizer.json
--data-path preprocess_lines --train-data-path preprocess_lines --seq-length 4 --data-cache-path c --tokenizer-description tokenizer.json
--split 1 --train-data-path preprocess_lines --seq-length 4 --data-cache-path c --tokenizer-description tokenizer.json
preprocess_lines --seq-length 4 --data-cache-path c --tokenizer-description tokenizer.json
LINES
# The path of the cached data now has other data.
prepare() {
  inspect_dataset prepare-cache --data-path preprocess_lines --split 1 --seq-length 4 \
      --data-cache-path cache --tokenizer-description tokenizer.json
}
prepare > out
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines_eod.bin preprocess_lines.bin
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines_eod.idx preprocess_lines.idx
prepare || echo "exit $?"
