# SPDX-License-Identifier: Apache-2.0
cp "$CASE_DIR"/../../golden/megatron/idx_uint16_3docs.{bin,idx} .
inspect_dataset verify idx_uint16_3docs --vocab-size 999 || echo "exit $?"
inspect_dataset verify idx_uint16_3docs --vocab-size 999 --json
