# SPDX-License-Identifier: Apache-2.0
preprocess_data --version > version
grep -Eqx 'preprocess_data \(millrace\) [0-9]+\.[0-9]+\.[0-9]+' version
part() { echo "($1 [0-9]+\.[0-9]+(\.[0-9]+)?|without $1)"; }
codecs="$(part snappy), $(part lz4), $(part brotli)"
grep -Eqx "optional parts: $(part PCRE2), $(part bzip2), $(part liblzma), $codecs, $(part ICU), $(part xxHash), $(part MPI)" version
