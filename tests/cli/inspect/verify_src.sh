# SPDX-License-Identifier: Apache-2.0
# Verifies a .src with different sidecars next to it, and then with the source place of one document
# changed.
golden=$CASE_DIR/../../golden
cp "$golden"/megatron/preprocess_lines.{bin,idx} .
cp "$golden"/sidecars/preprocess_lines.src .
inspect_dataset verify preprocess_lines
sed 's/"sum": 1/"sum": null/; s/"sum_root": "[0-9a-f]*"/"sum_root": null/' \
    "$golden"/sidecars/preprocess_lines.meta > preprocess_lines.meta
inspect_dataset verify preprocess_lines
inspect_dataset verify preprocess_lines --json
fails() { inspect_dataset verify preprocess_lines "$@" || echo "exit $?"; }
sed -i 's/"text_bytes": 741/"text_bytes": 740/' preprocess_lines.meta
fails
fails --json
sed -i 's/"text_bytes": 740/"text_bytes": 741/; s/"path": "pre/"path": "per/' preprocess_lines.meta
fails
sed -i 's/"path": "per/"path": "pre/; s/"empty_documents": 3/"empty_documents": 2/' preprocess_lines.meta
fails
sed -i 's/"empty_documents": 2/"empty_documents": 3/; s/"blank_lines": 0/"blank_lines": 1/' preprocess_lines.meta
fails
sed -i 's/"blank_lines": 1/"blank_lines": 0/' preprocess_lines.meta
printf '\200' | dd of=preprocess_lines.src bs=1 seek=48 conv=notrunc status=none
fails
rm preprocess_lines.src
fails
