# SPDX-License-Identifier: Apache-2.0
# Asked for, help is an answer: on stdout, and nothing else anywhere. Every flag is in it.
preprocess_data --help > help
for flag in input json-keys output-prefix overwrite append-eod on-bad-record workers log-interval \
  json split-sentences keep-newlines lang metrics metrics-format dry-run resume task partitions \
  keep-sequential-samples text-key max-bad-records no-provenance no-checksums tokenizer-memory zstd-memory tokenizer-type \
  tokenizer-model vocab-file merge-file vocab-size vocab-extra-ids tokenizer-special-tokens \
  special-tokens-in-text eod-token tiktoken-pattern tiktoken-num-special-tokens \
  tokenizer-sentencepiece-legacy no-tokenizer-sentencepiece-ignore-extra-whitespaces \
  tokenizer-hf-no-use-fast tokenizer-hf-no-include-special-tokens trust-remote-code \
  null-tokenizer-eod-id null-tokenizer-pad-id help version; do
  grep -qE -- "^  (-. \[ )?--$flag( |$)" help
done
grep -q 'NLTK' help
