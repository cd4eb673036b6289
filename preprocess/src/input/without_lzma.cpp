// SPDX-License-Identifier: Apache-2.0
#include "input/decoder.hpp"

/// Replaces xz_decoder.cpp in a build without liblzma.
namespace millrace::preprocess {

std::unique_ptr<decoder> make_xz_decoder() {
  return nullptr;
}

std::string lzma_version() {
  return {};
}

}  // namespace millrace::preprocess
