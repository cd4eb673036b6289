# SPDX-License-Identifier: Apache-2.0
# Byte offsets count from the start of the file, including a byte order mark.
printf '\xef\xbb\xbf{"text": "a"}\n[]\n' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix out
