# SPDX-License-Identifier: Apache-2.0
golden=$CASE_DIR/../../golden/megatron
mkdir parts
cp "$golden/idx_mm.bin" parts/a.bin
cp "$golden/idx_mm.idx" parts/a.idx
echo old > out.idx
status=0
merge_datasets --input parts --output-prefix out || status=$?
cat out.idx
merge_datasets --input parts --output-prefix out --overwrite 2> log
cmp out.bin parts/a.bin
exit "$status"
