# SPDX-License-Identifier: Apache-2.0
# A folder of datasets becomes one dataset, in the order of the names. The output lists them.
golden=$CASE_DIR/../../golden/megatron
mkdir parts
for suffix in bin idx; do
  cp "$golden/idx_uint16_3docs.$suffix" "parts/a.$suffix"
  cp "$golden/idx_empty.$suffix" "parts/b.$suffix"
  cp "$golden/idx_uint16_3docs.$suffix" "parts/c.$suffix"
done
merge_datasets --input parts --output-prefix all --json
cmp all.bin "$golden/merge_a_e_a.bin"
cmp all.idx "$golden/merge_a_e_a.idx"
test "$(echo all*)" = 'all.bin all.idx'
