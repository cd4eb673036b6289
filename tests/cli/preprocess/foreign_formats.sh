# SPDX-License-Identifier: Apache-2.0
# Files in other formats are recognized, even if they are compressed or come through a pipe. The
# message names the format and says what to do.
echo '{"text": "a"}' > in.jsonl
printf 'PK\x03\x04\x14\0\0\0' > a.zip
tar -cf a.tar --format=ustar in.jsonl
gzip -k a.tar
for code in UTF-16 UTF-16LE UTF-16BE UTF-32 UTF-32LE UTF-32BE; do
  iconv -f UTF-8 -t "$code" in.jsonl > "$code"
done
try() {
  local status=0
  preprocess_bytes --input "$1" --output-prefix out --on-bad-record skip 2> log || status=$?
  echo "= $status: $(cat log)"
}
for file in a.zip a.tar a.tar.gz UTF-*; do try "$file"; done
try - < a.zip
gzip -dc a.tar.gz | try -
try - < a.tar.gz
# This file only starts like an archive, so it is read as text.
printf 'PK is not an archive\n{"text": "a"}\n' > text
try text | grep -o 'text:1.*'
test "$(echo out*)" = 'out_text_document.bin out_text_document.idx out_text_document.meta '\
'out_text_document.src out_text_document.sum'
