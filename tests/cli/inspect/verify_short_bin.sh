# SPDX-License-Identifier: Apache-2.0
cp "$CASE_DIR"/../../golden/megatron/idx_int32.{bin,idx} .
truncate -s 8 idx_int32.bin
inspect_dataset verify idx_int32
