// SPDX-License-Identifier: Apache-2.0
#include "codec.hpp"

/// Replaces brotli_codec.cpp in a build without libbrotlidec.
namespace millrace::parquet::detail {

std::unique_ptr<page_codec> make_brotli_codec() {
  return nullptr;
}

std::string brotli_version() {
  return {};
}

}  // namespace millrace::parquet::detail
