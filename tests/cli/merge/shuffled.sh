# SPDX-License-Identifier: Apache-2.0
# The output has the same documents, each once, in another order. The source places move with the
# documents.
for part in 1 2; do
  for i in 1 2 3 4 5 6 7 8; do printf '{"text": "text %s of part %s"}\n' "$i" "$part"; done > $part.jsonl
  mkdir -p parts
  preprocess_bytes --input $part.jsonl --output-prefix parts/$part 2> /dev/null
done
merge_datasets --input parts --output-prefix plain 2> /dev/null
merge_datasets --input parts --output-prefix mixed --shuffle-documents 7
merge_datasets --input parts --output-prefix again --shuffle-documents 7 2> /dev/null
merge_datasets --input parts --output-prefix other --shuffle-documents 8 2> /dev/null
for suffix in bin idx meta sum src; do cmp mixed.$suffix again.$suffix; done
test "$(echo mixed*)" = 'mixed.bin mixed.idx mixed.meta mixed.src mixed.sum'
inspect_dataset verify mixed
! cmp -s mixed.bin plain.bin
! cmp -s mixed.bin other.bin
show() { for d in $(seq 0 15); do inspect_dataset show "$1" --doc "$d" | grep -v -e ', document' -e '^sequence'; done; }
test "$(show mixed | sort)" = "$(show plain | sort)"
grep -o '"shuffle_documents": "7"' mixed.meta
# The seed must be a number. A damaged part is reported.
status=0
merge_datasets --input parts --output-prefix out --shuffle-documents x || status=$?
echo "= $status" >&2
printf 'x' | dd of="$(echo parts/2*.bin)" bs=1 seek=1 conv=notrunc 2> /dev/null
status=0
merge_datasets --input parts --output-prefix out --shuffle-documents 7 || status=$?
echo "= $status" >&2
test "$(echo out*)" = 'out*'
