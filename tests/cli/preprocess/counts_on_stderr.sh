# SPDX-License-Identifier: Apache-2.0
# What was passed over, filled in or left empty is told, also in a run that went well.
printf '\n{"text": ""}\n{"text": "\\ud800"}\n \n' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix out
