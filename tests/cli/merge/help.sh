# SPDX-License-Identifier: Apache-2.0
merge_datasets --help > help
for flag in input output-prefix multimodal shuffle-documents overwrite json help version; do
  grep -q -- "--$flag\b" help
done
