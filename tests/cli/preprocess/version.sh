# SPDX-License-Identifier: Apache-2.0
preprocess_data --version > version
grep -Eqx 'preprocess_data \(millrace\) [0-9]+\.[0-9]+\.[0-9]+' version
grep -Eqx 'optional parts: (PCRE2 [0-9]+\.[0-9]+|without PCRE2), (ICU [0-9]+\.[0-9]+|without ICU)' version
