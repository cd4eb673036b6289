# SPDX-License-Identifier: Apache-2.0
mkdir -p folder/below
echo '{"text": "a"}' > folder/.hidden
preprocess_data --input folder --output-prefix out
