# SPDX-License-Identifier: Apache-2.0
# Skipped records are reported and counted. The output is the same as without them.
printf '{"text": "a"}\nbad\n\n{"text": 1}\n{}\n{"text": "b"}\n[]\n{"text": "\xff"}\n' > in.jsonl
printf '{"text": "a"}\n{"text": "b"}\n' > good.jsonl
preprocess_bytes --input in.jsonl --output-prefix out --on-bad-record skip --json > summary
grep -o '"documents": 2' summary | uniq
grep -o '"blank_lines": [0-9]*' summary
grep -o '"bad_records": {[^}]*}' summary
preprocess_bytes --input good.jsonl --output-prefix good 2> log
cmp out_text_document.bin good_text_document.bin
cmp out_text_document.idx good_text_document.idx
