# SPDX-License-Identifier: Apache-2.0
# Asked for, help is an answer: on stdout, and nothing else anywhere. Every flag is in it.
preprocess_data --help > help
for flag in input json-keys output-prefix overwrite append-eod on-bad-record workers log-interval \
  json tokenizer-type tokenizer-model vocab-file merge-file vocab-size help version; do
  grep -q -- "--$flag\b" help
done
