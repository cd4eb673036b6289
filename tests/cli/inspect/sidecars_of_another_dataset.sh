# SPDX-License-Identifier: Apache-2.0
# The sidecars belong to a dataset that had the same name before.
golden=$CASE_DIR/../../golden
cp "$golden"/megatron/preprocess_lines_eod.bin data.bin
cp "$golden"/megatron/preprocess_lines_eod.idx data.idx
cp "$golden"/sidecars/preprocess_lines.meta data.meta
inspect_dataset info data || echo "exit $?"
inspect_dataset verify data || echo "exit $?"
rm data.meta
cp "$golden"/sidecars/typical.src data.src
inspect_dataset show data --doc 0 || echo "exit $?"
rm data.src
cp "$golden"/sidecars/idx_uint16_3docs.sum data.sum
inspect_dataset verify data || echo "exit $?"
# The counts match, but the root differs.
cp "$golden"/megatron/preprocess_lines.bin data.bin
cp "$golden"/megatron/preprocess_lines.idx data.idx
cp "$golden"/sidecars/preprocess_lines.meta data.meta
rm data.sum
inspect_dataset verify data || echo "exit $?"
