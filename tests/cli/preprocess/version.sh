# SPDX-License-Identifier: Apache-2.0
preprocess_data --version > version
grep -Eqx 'preprocess_data \(millrace\) [0-9]+\.[0-9]+\.[0-9]+' version
part='( [0-9]+(\.[0-9]+)+)'
grep -Eqx "optional parts: (PCRE2$part|without PCRE2), (bzip2$part|without bzip2), (liblzma$part|without liblzma)" version
