# SPDX-License-Identifier: Apache-2.0
# Without checksums, `verify` compares tokens with the vocabulary size in the .meta. Without a
# .meta, it says that it did not check the tokens.
echo '{"text": "abc"}' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix out --no-checksums 2> log
d=out_text_document
inspect_dataset verify $d
inspect_dataset verify $d --json
printf '\xff\xff' | dd of=$d.bin conv=notrunc status=none
inspect_dataset verify $d || echo "= $?"
rm $d.meta $d.src
inspect_dataset verify $d
inspect_dataset verify $d --json
inspect_dataset verify $d --vocab-size 512 || echo "= $?"
