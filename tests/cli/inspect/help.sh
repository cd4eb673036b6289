# SPDX-License-Identifier: Apache-2.0
# Help goes to stdout and fits on a screen of 80 columns. Only the list of all run flags is longer.
for what in '' info verify show prepare-cache where audit simulate; do
  # shellcheck disable=SC2086  # nothing, or a verb
  inspect_dataset $what --help > text
  head -n 1 text
  awk -v what="$what" 'length >= 80 { print what ": wide: " $0 } END { if (NR > 30) print what ": long: " NR }' text
done
inspect_dataset --help run > text
head -n 1 text
awk 'length >= 80 { print "run: wide: " $0 } END { if (NR > 60) print "run: long: " NR }' text
inspect_dataset --help json > text
head -n 1 text
awk 'length >= 80 { print "json: wide: " $0 } END { if (NR > 30) print "json: long: " NR }' text
inspect_dataset --help where 2> err || echo "$?: $(head -n 1 err)"
