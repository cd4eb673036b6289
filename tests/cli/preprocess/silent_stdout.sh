# SPDX-License-Identifier: Apache-2.0
# Without --json there is no answer, so nothing is on stdout.
echo '{"text": "a"}' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix out
