# SPDX-License-Identifier: Apache-2.0
# `info` reports the inputs of a dataset, and `show` the source of a document. Both read the
# sidecars next to the .bin and .idx.
cp "$CASE_DIR"/../../golden/megatron/preprocess_lines.{bin,idx} .
cp "$CASE_DIR"/../../golden/sidecars/preprocess_lines.{meta,src} .
inspect_dataset info preprocess_lines
inspect_dataset info preprocess_lines --json | grep -o '"meta": .*'
inspect_dataset show preprocess_lines --doc 2 --tokens 3
inspect_dataset show preprocess_lines --doc 2 --tokens 3 --json
