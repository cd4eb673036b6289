# SPDX-License-Identifier: Apache-2.0
# What cannot be read of a Parquet file is said with its place.
cp "$CASE_DIR"/../../golden/parquet/{texts,chats}.parquet .
try() {
  local status=0
  preprocess_bytes --output-prefix out "$@" 2> log || status=$?
  echo "= $status: $(grep -v -e Processed -e '^note:' log)"
}
try --input texts.parquet --json-keys txt
try --input texts.parquet --text-key meta.title
try --input chats.parquet --json-keys messages
try --input texts.parquet --json-keys id
try --input - < texts.parquet
head -c 2000 texts.parquet > short.parquet
try --input short.parquet
printf 'PAR1' > tiny.parquet
try --input tiny.parquet
printf '{"text": "a"}\n' > lines.parquet
try --input lines.parquet
cp texts.parquet damaged.parquet
printf '\x55' | dd of=damaged.parquet bs=1 seek=1060 conv=notrunc status=none
try --input damaged.parquet
status=0
preprocess_data --input texts.parquet --output-prefix out --messages-key messages \
    --tokenizer-type HuggingFaceTokenizer --tokenizer-model "$CASE_DIR/../../golden/tiny_chat" 2> log ||
  status=$?
echo "= $status: $(cat log)"
mkdir mixed
cp texts.parquet lines.parquet mixed
mv mixed/lines.parquet mixed/lines.jsonl
try --input mixed
echo "$(echo out*)"
