# SPDX-License-Identifier: Apache-2.0
# A wrong pointer is repaired in a new file, from the lengths. What would need a guess is refused.
cp "$CASE_DIR"/../../golden/megatron/idx_uint16_3docs.{bin,idx} .
inspect_dataset verify idx_uint16_3docs --repair pointers
printf '\4' | dd of=idx_uint16_3docs.idx bs=1 seek=54 conv=notrunc status=none
inspect_dataset verify idx_uint16_3docs --repair pointers
inspect_dataset verify idx_uint16_3docs || echo "exit $?"
cp "$CASE_DIR"/../../golden/sidecars/idx_uint16_3docs.sum .
inspect_dataset verify idx_uint16_3docs --repair pointers --json
mv idx_uint16_3docs.idx.repaired idx_uint16_3docs.idx
inspect_dataset verify idx_uint16_3docs
cmp idx_uint16_3docs.idx "$CASE_DIR"/../../golden/megatron/idx_uint16_3docs.idx
printf x >> idx_uint16_3docs.bin
inspect_dataset verify idx_uint16_3docs --repair pointers || echo "exit $?"
ls
inspect_dataset verify idx_uint16_3docs --repair lengths || echo "exit $?"
inspect_dataset verify idx_uint16_3docs --repair pointers --workers 2 || echo "exit $?"
inspect_dataset verify . --repair pointers || echo "exit $?"
inspect_dataset verify nowhere --repair pointers || echo "exit $?"
# The printed command works for any name.
mkdir "it's"
cd "it's"
for ending in bin idx; do cp "$CASE_DIR"/../../golden/megatron/idx_uint16_3docs.$ending "a'b c.$ending"; done
printf '\4' | dd of="a'b c.idx" bs=1 seek=54 conv=notrunc status=none
inspect_dataset verify "a'b c" --repair pointers | tee answer
sed -n 's/^next: //p' answer > next.sh
bash next.sh
