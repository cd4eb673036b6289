# SPDX-License-Identifier: Apache-2.0
cp "$CASE_DIR"/../../golden/megatron/idx_int32.{bin,idx} .
exec 3> >(:)
wait $!  # now the pipe has no reader
inspect_dataset info idx_int32 >&3
