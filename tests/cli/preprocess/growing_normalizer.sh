# SPDX-License-Identifier: Apache-2.0
# If the normalizer of the tokenizer doubles a text again and again, the text becomes a bad record,
# quickly and with little memory.
{
  echo '{"normalizer": {"type": "Sequence", "normalizers": ['
  for i in $(seq 40); do
    test "$i" = 1 || echo ,
    echo '{"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}'
  done
  echo ']}, "pre_tokenizer": {"type": "WhitespaceSplit"},'
  echo ' "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "b": 1}}}'
} > tokenizer.json
printf '{"text": "b"}\n{"text": "banana"}\n{"text": "b b"}\n' > in.jsonl
timeout 60 preprocess_data --input in.jsonl --output-prefix out --on-bad-record skip \
    --tokenizer-type HuggingFaceTokenizer --tokenizer-model tokenizer.json
