# SPDX-License-Identifier: Apache-2.0
golden=$CASE_DIR/../../golden/megatron
mkdir parts
for part in a b; do
  cp "$golden/idx_mm.bin" "parts/$part.bin"
  cp "$golden/idx_mm.idx" "parts/$part.idx"
done
merge_datasets --input parts/ --output-prefix all --multimodal 2> log
cmp all.bin "$golden/merge_mm.bin"
cmp all.idx "$golden/merge_mm.idx"
