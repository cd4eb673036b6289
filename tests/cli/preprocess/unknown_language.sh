# SPDX-License-Identifier: Apache-2.0
# A language that there is none of is a mistake on the command line, whatever libraries there are.
echo '{"text": "a"}' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix out --split-sentences --lang xx
