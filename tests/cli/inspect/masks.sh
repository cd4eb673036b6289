# SPDX-License-Identifier: Apache-2.0
# A mask stays with its tokens.
golden="$CASE_DIR"/../../golden
mkdir parts
for part in a b; do
  cp "$golden"/megatron/idx_uint16_3docs.bin parts/$part.bin
  cp "$golden"/megatron/idx_uint16_3docs.idx parts/$part.idx
  cp "$golden"/sidecars/idx_uint16_3docs.mask parts/$part.mask
done
inspect_dataset verify parts/a
inspect_dataset verify parts/a --json | grep -o '"mask_trained": [0-9a-z]*'
inspect_dataset show parts/a --doc 2
inspect_dataset show parts/a --doc 2 --from 1 --count 3 --as aligned
inspect_dataset show parts/a --doc 0 --json | grep -o '"trained": [^]]*'
merge_datasets --input parts --output-prefix both 2> log
inspect_dataset verify both
inspect_dataset filter both --drop --documents 0 --output-prefix fewer
inspect_dataset show fewer --doc 1 --json | grep -o '"trained": [^]]*'
inspect_dataset convert fewer --to nanoset --output-prefix fewer --lossy
od -An -tu1 fewer.ds.loss
inspect_dataset convert fewer.ds --output-prefix again
cmp fewer.mask again.mask
inspect_dataset convert fewer --to nanogpt --output-prefix flat || echo "exit $?"
# What would train other tokens is refused.
printf 'x' | dd of=both.mask bs=1 seek=32 conv=notrunc status=none
inspect_dataset verify both || echo "exit $?"
inspect_dataset filter both --drop --documents 0 --output-prefix new || echo "exit $?"
rm parts/b.mask
merge_datasets --input parts --output-prefix new || echo "exit $?"
cp parts/a.mask fewer.mask
inspect_dataset show fewer --doc 0 || echo "exit $?"
test ! -e new.bin

# What the mask means for the loss.
shown=(parts/a --order stored --seq-length 7 --step 0 --json)
for alignment in label input ignored; do
  inspect_dataset show "${shown[@]}" --mask-alignment $alignment 2> /dev/null | grep -o '"loss_mask": [^]]*]'
done
inspect_dataset audit parts/a --order stored --seq-length 3
inspect_dataset audit parts/a --order stored --seq-length 3 --json | grep -o '"served": .*"trained": [0-9]*'
inspect_dataset show "${shown[@]}" --mask-alignment output || echo "exit $?"
