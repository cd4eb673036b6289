# SPDX-License-Identifier: Apache-2.0
# A decompressed file that kept its name, told before anything is written.
echo '{"text": "a"}' > in.jsonl.gz
preprocess_bytes --input in.jsonl.gz --output-prefix out
