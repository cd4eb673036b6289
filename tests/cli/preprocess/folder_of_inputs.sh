# SPDX-License-Identifier: Apache-2.0
# Reads all files below the folder, ordered by the bytes of the path: in/a-b, in/a/b, in/a/c/d,
# in/b.
mkdir -p in/a/c
printf '{"text": "1"}\n' > in/a-b
printf '{"text": "2"}\n' | gzip > in/a/b
printf '{"text": "3"}\n' > in/a/c/d
printf '[{"text": "4"},\n {"text": "5"}]\n' > in/b
preprocess_bytes --input in --output-prefix out 2> log
od -An -tc out_text_document.bin
