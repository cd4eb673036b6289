# SPDX-License-Identifier: Apache-2.0
# The samples and epochs that Megatron makes of each part. Misspelled prefixes are named.
for ((k = 0; k < 100; ++k)); do printf '{"text": "%05d"}\n' "$k"; done > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix in 2> log
inspect_dataset info in_text_document --seq-length 10 | tail -n 4
inspect_dataset info in_text_document --seq-length 10 --split 8,1,1 --train-samples 100 --valid-samples 7 | tail -n 4
inspect_dataset info in_text_document --seq-length 10 --split 1 --no-extra-token --json | grep -o '"megatron": .*}]}'
echo '= too short, and refused'
inspect_dataset info in_text_document --seq-length 1000 --split 1 | tail -n 1
inspect_dataset info in_text_document --seq-length 10 --split 1,0,0 --valid-samples 4 | tail -n 1
for flags in '--split 1' '--seq-length 0' '--seq-length 10 --split x' '--seq-length 10 --split 1 --train-samples 0'; do
  # shellcheck disable=SC2086  # the words of a command line
  inspect_dataset info in_text_document $flags > out 2> err || echo "$?: $(head -n 1 err)"
done
echo '= misspelled'
for name in in_test_document in_text_documents in_text IN_TEXT_DOCUMENT other; do
  inspect_dataset info "$name" > out 2> err || echo "$?: $(head -n 1 err)"
done
