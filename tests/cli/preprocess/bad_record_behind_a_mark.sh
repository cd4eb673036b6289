# SPDX-License-Identifier: Apache-2.0
# The byte counts from the start of the file, so a byte order mark counts as well.
printf '\xef\xbb\xbf{"text": "a"}\n[]\n' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix out
