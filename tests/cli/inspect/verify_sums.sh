# SPDX-License-Identifier: Apache-2.0
# First the dataset is whole. Then a bit of the .bin differs, which no entry of the .idx shows. Then
# there are no checksums.
cp "$CASE_DIR"/../../golden/megatron/idx_uint16_3docs.{bin,idx} .
cp "$CASE_DIR"/../../golden/sidecars/idx_uint16_3docs.sum .
inspect_dataset verify idx_uint16_3docs
inspect_dataset verify idx_uint16_3docs --json
printf '\6' | dd of=idx_uint16_3docs.bin bs=1 seek=4 conv=notrunc status=none
inspect_dataset verify idx_uint16_3docs || echo "exit $?"
inspect_dataset verify idx_uint16_3docs --json || echo "exit $?"
rm idx_uint16_3docs.sum
inspect_dataset verify idx_uint16_3docs
