# SPDX-License-Identifier: Apache-2.0
echo '{"text": "a"}' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix new/folder/out
