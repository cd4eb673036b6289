# SPDX-License-Identifier: Apache-2.0
# Documents without sequences, a dataset without anything, modes.
for name in idx_uint16_3docs idx_empty idx_mm; do
  cp "$CASE_DIR"/../../golden/megatron/$name.{bin,idx} .
  inspect_dataset info $name
done
