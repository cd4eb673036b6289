// SPDX-License-Identifier: Apache-2.0
#include "codec.hpp"

/// Replaces lz4_codec.cpp in a build without liblz4.
namespace millrace::parquet::detail {

std::unique_ptr<page_codec> make_lz4_codec(bool /*has_hadoop_frames*/) {
  return nullptr;
}

std::string lz4_version() {
  return {};
}

}  // namespace millrace::parquet::detail
