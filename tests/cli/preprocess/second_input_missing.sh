# SPDX-License-Identifier: Apache-2.0
# Looked for before the work on the first one begins.
echo 'not even JSON' > in.jsonl
preprocess_bytes --input in.jsonl nowhere.jsonl --output-prefix out
