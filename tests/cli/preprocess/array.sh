# SPDX-License-Identifier: Apache-2.0
# Elements are lines to every message; offsets are those of the file.
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
