# SPDX-License-Identifier: Apache-2.0
# Several datasets: a folder, a pattern and a list. A damaged one counts more than one that cannot be
# checked. Neither keeps the others from being checked.
mkdir -p parts/deep
for name in idx_uint16_3docs idx_int32; do
  cp "$CASE_DIR"/../../golden/megatron/$name.{bin,idx} parts
done
cp "$CASE_DIR"/../../golden/megatron/idx_empty.{bin,idx} parts/deep
cp "$CASE_DIR"/../../golden/sidecars/idx_uint16_3docs.sum parts
inspect_dataset verify parts
inspect_dataset verify 'parts/idx_*' parts/deep/idx_empty --vocab-size 100000 --json
echo "--- a dataset that cannot be read"
rm parts/deep/idx_empty.bin
inspect_dataset verify parts || echo "exit $?"
inspect_dataset verify parts/deep/idx_empty --json || echo "exit $?"
inspect_dataset verify nowhere || echo "exit $?"
echo "--- and one that is damaged"
printf x >> parts/idx_int32.bin
inspect_dataset verify parts || echo "exit $?"
inspect_dataset verify parts --json || echo "exit $?"
inspect_dataset verify parts --workers 0 || echo "exit $?"
mkdir none
inspect_dataset verify none || echo "exit $?"
