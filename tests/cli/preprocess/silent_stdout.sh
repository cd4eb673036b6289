# SPDX-License-Identifier: Apache-2.0
# Without --json, nothing is printed to stdout.
echo '{"text": "a"}' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix out
