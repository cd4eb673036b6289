# SPDX-License-Identifier: Apache-2.0
# Each sentence is a sequence of its document. White space between two sentences belongs to neither;
# with --keep-newlines, it belongs to the first.
if preprocess_data --version | grep -q 'without ICU'; then
  echo 'needs a build with ICU' >&2
  exit 77
fi
printf '%s\n' '{"text": "Mr. A.  B?\n\nC"}' '{"text": [" D. E", "F"]}' '{"text": " "}' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix out --append-eod --split-sentences 2> log
for doc in 0 1 2; do inspect_dataset show out_text_sentence --doc $doc; done
tail -n 1 log
preprocess_bytes --input in.jsonl --output-prefix kept --append-eod --split-sentences \
  --keep-newlines --lang english 2> log
for doc in 0 1 2; do inspect_dataset show kept_text_sentence --doc $doc; done
