# SPDX-License-Identifier: Apache-2.0
# What completion in a shell types.
cp "$CASE_DIR"/../../golden/megatron/idx_int32.{bin,idx} .
inspect_dataset info idx_int32.bin
