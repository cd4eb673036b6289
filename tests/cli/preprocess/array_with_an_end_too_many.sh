# SPDX-License-Identifier: Apache-2.0
# The first line is a list, so the whole file is read as one array.
printf '["a"]\n{"text": "b"}\n' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix out
