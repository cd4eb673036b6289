# SPDX-License-Identifier: Apache-2.0
# The completion of a shell gives names with an extension. `info` and `verify` refuse them and name
# the prefix to pass.
cp "$CASE_DIR"/../../golden/megatron/idx_int32.{bin,idx} .
touch idx_int32.{meta,sum,src,bad}
for suffix in bin idx meta sum src bad; do
  inspect_dataset info idx_int32.$suffix || echo "exit $?"
done
inspect_dataset verify idx_int32.src || echo "exit $?"
