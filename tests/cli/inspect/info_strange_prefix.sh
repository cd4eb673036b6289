# SPDX-License-Identifier: Apache-2.0
# A path may hold any bytes, but a JSON text may not.
prefix=$'quote" back\\slash\xff'
for suffix in bin idx; do
  cp "$CASE_DIR/../../golden/megatron/idx_int32.$suffix" "$prefix.$suffix"
done
inspect_dataset info --json -- "$prefix"
