# SPDX-License-Identifier: Apache-2.0
# Regular expressions need PCRE2. A build without it says so.
inspect_dataset --version | grep -q PCRE2\  || { echo 'needs PCRE2' >&2; exit 77; }
cat > in.jsonl << 'LINES'
{"text": "Red foxes\nred: naïve"}
{"text": ""}
LINES
preprocess_bytes --input in.jsonl --output-prefix a 2> log
inspect_dataset search a_text_document --regex '(?im)^red\b'
inspect_dataset search a_text_document --regex 'na\wve' --json
inspect_dataset search a_text_document --regex 'x*' --hits 2
inspect_dataset search a_text_document --regex '(' 2> err || echo "$?: $(head -n 1 err)"
inspect_dataset search a_text_document --regex '(a*)*b(?<=(a|aa)+)' 2> err || echo "$?: $(head -n 1 err)"
inspect_dataset search a_text_document --regex '\C' 2> err || echo "$?: $(head -n 1 err)"
