# SPDX-License-Identifier: Apache-2.0
# Help goes to stdout, and nothing else is printed. Without a group, it fits on a screen. Every flag
# is in one of the groups, and `all` lists all flags.
preprocess_data --help > screen
test "$(wc -l < screen)" -le 40
test "$(wc -L < screen)" -le 100
grep -q -- '--tokenizer-type' screen
for group in files choice work tokenizer chat sentences fim; do preprocess_data --help $group; done > groups
preprocess_data -h all > help
for flag in $(grep -oE -- '^  --[a-z-]+' groups | sort -u); do grep -qE -- "^  $flag( |\$)" help; done
preprocess_data --help everything 2> log && exit 1
grep -q 'expected files, choice, work, tokenizer, chat, sentences, fim' log
for flag in input json-keys output-prefix overwrite append-eod on-bad-record workers log-interval \
  json split-sentences keep-newlines lang metrics metrics-format dry-run resume task partitions \
  keep-sequential-samples text-key max-bad-records no-provenance no-checksums tokenizer-memory zstd-memory tokenizer-type \
  tokenizer-model vocab-file merge-file vocab-size vocab-extra-ids tokenizer-special-tokens \
  special-tokens-in-text eod-token tiktoken-pattern tiktoken-num-special-tokens \
  tokenizer-sentencepiece-legacy no-tokenizer-sentencepiece-ignore-extra-whitespaces \
  tokenizer-hf-no-use-fast tokenizer-hf-no-include-special-tokens trust-remote-code \
  messages-key tools-key chat-template template-date train-on train-on-eot roles-map \
  reasoning-content max-length overlong preview sft-tokenizer-prompt-format \
  null-tokenizer-eod-id null-tokenizer-pad-id tokenizer-cache sample-rate sample-seed max-tokens fim-rate fim-spm-rate fim-seed \
  fim-prefix-token fim-middle-token fim-suffix-token fim-split-sample fim-fragment-rate fim-no-prefix find-optimal-num-workers \
  workers-to-check max-documents performance-dir padded-vocab-size no-pad-vocab-size use-gigatoken help version; do
  grep -qE -- "^  (-. \[ )?--$flag( |$)" help
done
grep -q 'NLTK' help
