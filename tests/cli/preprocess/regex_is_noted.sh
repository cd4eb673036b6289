# SPDX-License-Identifier: Apache-2.0
# A regular expression without a specialized splitter makes the run slower, so a note names it. If
# its match fails on a text, the record is bad.
if preprocess_data --version | grep -q 'without PCRE2'; then
  echo 'this build is without PCRE2' >&2
  exit 77
fi
cat > tokenizer.json <<'EOF'
{"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "x|(?:a?a)+c"}, "behavior": "Isolated",
                   "invert": false},
 "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "x": 1}}}
EOF
printf '{"text": "x%0300d"}\n{"text": "xx x"}\n' 0 | tr 0 a > in.jsonl
preprocess_data --input in.jsonl --output-prefix out --on-bad-record skip \
    --tokenizer-type HuggingFaceTokenizer --tokenizer-model tokenizer.json
