# SPDX-License-Identifier: Apache-2.0
# Shows a dataset with documents that have no sequences, an empty dataset, and a multimodal dataset.
for name in idx_uint16_3docs idx_empty idx_mm; do
  cp "$CASE_DIR"/../../golden/megatron/$name.{bin,idx} .
  inspect_dataset info $name
done
