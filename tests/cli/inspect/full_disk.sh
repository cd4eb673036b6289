# SPDX-License-Identifier: Apache-2.0
# The command must fail if its output cannot be written.
[[ -w /dev/full ]] || { echo 'no /dev/full here' >&2; exit 77; }
cp "$CASE_DIR"/../../golden/megatron/idx_int32.{bin,idx} .
inspect_dataset info idx_int32 > /dev/full || echo "exit $?"
inspect_dataset --help > /dev/full || echo "exit $?"
inspect_dataset info idx_int32 >&- || echo "exit $?"
