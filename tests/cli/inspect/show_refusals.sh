# SPDX-License-Identifier: Apache-2.0
# Flags that contradict each other, and places that do not exist.
printf '{"text": "abcdefgh"}\n{"text": ""}\n' > in.jsonl
preprocess_bytes --input in.jsonl --output-prefix in 2> log
data=in_text_document
refused() {
  inspect_dataset show "$@" > out 2> err || echo "$?: $(grep -v assumed err | head -n 1)"
}
refused $data
refused --doc 0
refused $data second --doc 0
refused $data --doc 0 --sequence 0
refused $data --doc 2
refused $data --sequence 2
refused $data --doc 0 --step 3
refused $data --doc 0 --order stored --seq-length 2
refused $data --doc 0 --from 8
refused $data --doc 1 --from 1
refused $data --doc 0 --context 3
refused $data --doc 0 --count 3 --tokens 3
refused $data --doc 0 --count 3 --all
refused $data --doc 0 --as table
refused $data --step 0
refused $data --step 0 --order stored
refused $data --step 0 --order stored --seq-length 100
refused $data --step 9 --order stored --seq-length 2
refused $data --step 0 --rank 1 --order stored --seq-length 2
refused $data --rank 0 --order stored --seq-length 2
refused $data --sample 3 --order stored --seq-length 2
refused $data --sample 1 --step 1 --order stored --seq-length 2
refused $data --sample 1 --order stored --seq-length 2 --from 2
refused $data --sample 1 --order stored --seq-length 2 --eod-id 3
rm $data.meta
refused $data --sample 1 --order stored --seq-length 2 --eod-mask-loss
refused $data --sample 1 --order stored --seq-length 2 --eod-mask-loss --eod-id 3
