# SPDX-License-Identifier: Apache-2.0
cp "$CASE_DIR"/../../golden/megatron/{idx_uint16_3docs,idx_empty}.{bin,idx} .
inspect_dataset show idx_uint16_3docs --doc 3 || echo "exit $?"
inspect_dataset show idx_empty --doc 0 || echo "exit $?"
