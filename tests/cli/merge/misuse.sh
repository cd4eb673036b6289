# SPDX-License-Identifier: Apache-2.0
mkdir in
misuse() {
  local status=0
  merge_datasets "$@" || status=$?
  echo "= $status: ${*@Q}" >&2
}
misuse
misuse --input in
misuse --output-prefix out
misuse --input in --output-prefix out --no-such-flag
misuse --input in in --output-prefix out
misuse --input --output-prefix out
misuse --input in --input in --output-prefix out
misuse --inp in --output-prefix out
misuse --input in --output-prefix out/
misuse --input in --output-prefix .
