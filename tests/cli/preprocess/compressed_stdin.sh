# SPDX-License-Identifier: Apache-2.0
# The compression of stdin is recognized by its first bytes.
printf '{"text": "a"}\n' > in
for pack in cat gzip 'zstd -qc'; do
  $pack < in | preprocess_bytes --input - --output-prefix out --overwrite 2> log
  od -An -tc out_text_document.bin
done
