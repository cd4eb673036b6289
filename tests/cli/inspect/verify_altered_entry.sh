# SPDX-License-Identifier: Apache-2.0
# Changes the pointer of sequence 1 (8 bytes at byte 34 + 3 * 4 + 8), which is in the middle of the
# index. All checks that run when the dataset is opened pass.
cp "$CASE_DIR"/../../golden/megatron/idx_uint16_3docs.{bin,idx} .
printf '\4' | dd of=idx_uint16_3docs.idx bs=1 seek=54 conv=notrunc status=none
inspect_dataset info idx_uint16_3docs > /dev/null
inspect_dataset verify idx_uint16_3docs || echo "exit $?"
inspect_dataset verify idx_uint16_3docs --json
