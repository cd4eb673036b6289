// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace millrace::parquet {

/// The optional codecs of this build, e.g. "snappy 1.1.9, lz4 1.9.4, without brotli".
std::string optional_codecs();

}  // namespace millrace::parquet
