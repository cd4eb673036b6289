# SPDX-License-Identifier: Apache-2.0
# A successful run also reports skipped blank lines, replaced surrogates and empty documents.
printf '\n{"text": ""}\n{"text": "\\ud800"}\n \n' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix out
