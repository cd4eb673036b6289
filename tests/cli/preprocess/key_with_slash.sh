# SPDX-License-Identifier: Apache-2.0
# The key becomes part of a file name, so it must not lead out of the folder.
echo '{"a/../../b": "x"}' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix out --json-keys 'a/../../b'
