# SPDX-License-Identifier: Apache-2.0
# A run starts by emptying its partial files. If an input is one of them, the run must refuse, or
# the input would be lost.
mkdir out
echo '{"text": "a"}' > out/p_text_document.bin.partial
for name in bin idx documents; do
  cp out/p_text_document.bin.partial input
  mv input "out/p_text_document.$name.partial" 2> /dev/null || true
  preprocess_bytes --input "out/p_text_document.$name.partial" --output-prefix out/p || echo "= $?" >&2
  grep -q '"a"' "out/p_text_document.$name.partial"
done
# A partial file with a second name (a hard link) must not be emptied either.
echo precious > precious
ln precious out/q_text_document.bin.partial
echo '{"text": "a"}' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix out/q || echo "= $?" >&2
cat precious
