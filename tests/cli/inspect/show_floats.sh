# SPDX-License-Identifier: Apache-2.0
cp "$CASE_DIR"/../../golden/megatron/all_dtypes/float32.{bin,idx} .
inspect_dataset show float32 --doc 3
inspect_dataset show float32 --doc 3 --json
inspect_dataset show float32 --doc 3 --tokenizer-type ByteLevelTokenizer
