# SPDX-License-Identifier: Apache-2.0
mkdir folder
preprocess_data --input folder --output-prefix out
