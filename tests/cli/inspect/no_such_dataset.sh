# SPDX-License-Identifier: Apache-2.0
for verb in info verify 'show --doc 0'; do
  # shellcheck disable=SC2086  # a verb and its options
  inspect_dataset $verb nowhere || echo "exit $?"
done
