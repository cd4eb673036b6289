# SPDX-License-Identifier: Apache-2.0
cp "$CASE_DIR"/../../golden/megatron/idx_int32.bin .
head -c 50 "$CASE_DIR/../../golden/megatron/idx_int32.idx" > idx_int32.idx
inspect_dataset verify idx_int32
