# SPDX-License-Identifier: Apache-2.0
# The name of the file says that it is compressed, but it is not. This is reported before anything
# is written.
echo '{"text": "a"}' > in.jsonl.gz
preprocess_bytes --input in.jsonl.gz --output-prefix out
