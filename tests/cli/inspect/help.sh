# SPDX-License-Identifier: Apache-2.0
# Help goes to stdout and fits on a screen.
for what in '' info verify show prepare-cache where audit simulate; do
  # shellcheck disable=SC2086  # nothing, or a verb
  inspect_dataset $what --help > text
  head -n 1 text
  awk -v what="$what" 'length > 100 { print what ": wide: " $0 } END { if (NR > 30) print what ": long: " NR }' text
done
