# SPDX-License-Identifier: Apache-2.0
merge_datasets --version > version
grep -Eqx 'merge_datasets \(millrace\) [0-9]+\.[0-9]+\.[0-9]+' version
grep -Eqx 'optional parts: (xxHash [0-9.]+|without xxHash)' version
