# SPDX-License-Identifier: Apache-2.0
cp "$CASE_DIR"/../../golden/megatron/idx_mm.{bin,idx} .
inspect_dataset show idx_mm --doc 0 --json
