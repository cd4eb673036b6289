# SPDX-License-Identifier: Apache-2.0
mkdir -p folder/below
echo '{"text": "a"}' > folder/.hidden
preprocess_bytes --input folder --output-prefix out
