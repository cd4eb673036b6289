// SPDX-License-Identifier: Apache-2.0
#include "codec.hpp"

/// Replaces snappy_codec.cpp in a build without libsnappy.
namespace millrace::parquet::detail {

std::unique_ptr<page_codec> make_snappy_codec() {
  return nullptr;
}

std::string snappy_version() {
  return {};
}

}  // namespace millrace::parquet::detail
