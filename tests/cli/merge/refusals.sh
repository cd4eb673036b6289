# SPDX-License-Identifier: Apache-2.0
# Each refusal names the problem, exits with 1 and writes nothing.
golden=$CASE_DIR/../../golden/megatron
fails() {
  local status=0
  merge_datasets "$@" || status=$?
  echo "= $status" >&2
}
put() { for suffix in bin idx; do cp "$golden/$1.$suffix" "$2.$suffix"; done; }

fails --input nowhere --output-prefix out
mkdir empty
fails --input empty --output-prefix out
fails --input "$golden/idx_mm.idx" --output-prefix out 2>&1 | sed "s:$golden:GOLDEN:" >&2

mkdir orphan
put idx_mm orphan/a
rm orphan/a.idx
fails --input orphan --output-prefix out

mkdir other
put idx_mm other/a
touch other/README
fails --input other --output-prefix out

mkdir types
put idx_mm types/a
put idx_uint16_3docs types/b
fails --input types --output-prefix out

mkdir modes
put idx_mm modes/a
put idx_int32 modes/b
fails --input modes --output-prefix out --multimodal

mkdir good
put idx_mm good/a
fails --input good --output-prefix new/out
fails --input good --output-prefix good/out

mkdir cut
put idx_mm cut/a
head -c 50 "$golden/idx_mm.idx" > cut/a.idx
fails --input cut --output-prefix out
put idx_mm cut/a
printf xx >> cut/a.bin
fails --input cut --output-prefix out

test -z "$(find . -name 'out*')"
