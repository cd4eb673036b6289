# SPDX-License-Identifier: Apache-2.0
for name in idx_uint16_3docs idx_empty idx_mm; do
  cp "$CASE_DIR"/../../golden/megatron/$name.{bin,idx} .
  inspect_dataset verify $name
  inspect_dataset verify $name --vocab-size 1000 --json
done
