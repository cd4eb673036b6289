# SPDX-License-Identifier: Apache-2.0
cp "$CASE_DIR"/../../golden/megatron/{idx_uint16_3docs,idx_mm}.{bin,idx} .
for doc in 0 1 2; do
  inspect_dataset show idx_uint16_3docs --doc $doc
done
inspect_dataset show idx_mm --doc 0
