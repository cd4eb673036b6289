# SPDX-License-Identifier: Apache-2.0
# An unknown language is a usage error, whatever libraries the build has.
echo '{"text": "a"}' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix out --split-sentences --lang xx
