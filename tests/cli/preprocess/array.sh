# SPDX-License-Identifier: Apache-2.0
# Messages count the elements of an array as lines. Byte offsets are those in the file.
cat > in.json <<'END'
[
  {"text": "a"},
  {"text":
     "b"},
  {"txt": "c"},
  {"text": "d"}
]
END
preprocess_bytes --input in.json --output-prefix out --on-bad-record skip 2> log
grep -F 'in.json' log
od -An -tc out_text_document.bin
