# SPDX-License-Identifier: Apache-2.0
# All inputs are looked up before the first is read.
echo 'not even JSON' > in.jsonl
preprocess_bytes --input in.jsonl nowhere.jsonl --output-prefix out
