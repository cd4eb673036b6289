// SPDX-License-Identifier: Apache-2.0
#include "input/decoder.hpp"

/// Replaces bzip2_decoder.cpp in a build without libbz2.
namespace millrace::preprocess {

std::unique_ptr<decoder> make_bzip2_decoder() {
  return nullptr;
}

std::string bzip2_version() {
  return {};
}

}  // namespace millrace::preprocess
