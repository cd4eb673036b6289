# SPDX-License-Identifier: Apache-2.0
# If the outputs are in the folder of the inputs, and the user passes the folder again, the message
# names the output files.
mkdir in
echo '{"text": "a"}' > in/a.jsonl
preprocess_bytes --input in --output-prefix in/web 2> log
try() {
  local status=0
  preprocess_bytes "$@" 2> log || status=$?
  echo "= $status: $(grep preprocess_data: log || tail -n 1 log)"
}
try --input in --output-prefix in/web --resume
try --input 'in/*' --output-prefix in/web --overwrite
try --input 'in/*.jsonl' --output-prefix in/web --resume
try --input in --output-prefix out
try --input in/web_text_document.idx --output-prefix out
cat in/web_text_document.idx | try --input - --output-prefix out
# This does not apply to other .bin files, nor to a .bin whose .idx is not an index.
mkdir other
echo '{"text": "a"}' | tee other/x.bin other/x.idx > other/y.bin
try --input other --output-prefix out
