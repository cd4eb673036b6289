# SPDX-License-Identifier: Apache-2.0
# Packed rows of Megatron-Bridge become a dataset; what is lost, and bad files, get a sentence.
golden="$CASE_DIR"/../../golden/packed_parquet
tell() { inspect_dataset convert "$@" --output-prefix out || echo "exit $?"; }
cp "$golden"/*.parquet .
tell two_rows.idx.parquet
tell two_rows.idx.parquet --lossy --json
for document in 0 1 2; do inspect_dataset show out --doc "$document" --json; done
inspect_dataset verify out
cat out.meta
tell two_rows.idx.parquet --lossy
tell two_rows.idx.parquet --lossy --overwrite --output-dtype uint16 --eod-id 2 --json
inspect_dataset info out | grep -e eod -e mask

# From a dataset and back. The first token of a document has no label, so its bit becomes 0.
inspect_dataset convert out --to bridge --seq-length 8 --packing one_per_row --lossy --output-prefix back 2> /dev/null
inspect_dataset convert back.idx.parquet --eod-id 2 --output-dtype uint16 --output-prefix again
cmp out.bin again.bin
cmp out.mask again.mask

# Several files, also by a pattern, a folder, or without an ending that tells what they are.
mkdir folder nothing
cp two_rows.idx.parquet folder/b.parquet
cp groups.idx.parquet folder/a.pq
echo '[]' > folder/packing.json
tell folder --lossy --overwrite --json
tell 'folder/[ab].p*' --lossy --overwrite
cp two_rows.idx.parquet rows
tell rows --lossy --overwrite
tell two_rows.idx.parquet --from bridge --lossy --overwrite
tell folder out
rm out.*

# Refusals.
tell nothing
tell nowhere.parquet
tell empty.idx.parquet
tell empty.idx.parquet empty.idx.parquet
: > nothing/zero.parquet
tell nothing
echo '{"text": "no Parquet file"}' > text.parquet
tell text.parquet
tell text.parquet two_rows.idx.parquet --from bridge
head -c 200 two_rows.idx.parquet > cut.parquet
tell cut.parquet
tell two_rows.idx.parquet --dtype uint16
tell two_rows.idx.parquet --bod-id 1
tell two_rows.idx.parquet --to nanoset
tell two_rows.idx.parquet --to bridge --seq-length 8
tell groups.idx.parquet --lossy --output-dtype uint16
for bad in "$golden"/errors/*; do
  cp "$bad" "${bad##*/}"
  tell "${bad##*/}" --lossy
  rm -f out.* "${bad##*/}"
done
ls
