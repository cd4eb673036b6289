# SPDX-License-Identifier: Apache-2.0
inspect_dataset --version > version
grep -Eqx 'inspect_dataset \(millrace\) [0-9]+\.[0-9]+\.[0-9]+' version
grep -Eqx 'optional parts: (PCRE2 [0-9]+\.[0-9]+|without PCRE2), (|without )liburing' version
