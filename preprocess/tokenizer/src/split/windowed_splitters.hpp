// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "split/splitters.hpp"

namespace millrace::tokenizer::detail {

/// What cuts 64 bytes at a time (windowed_splitter.hpp). On x86-64 only.
/// @pre the machine runs the instruction set
std::unique_ptr<const word_splitter> make_avx2_splitter(pattern pattern);
std::unique_ptr<const word_splitter> make_avx512_splitter(pattern pattern);

}  // namespace millrace::tokenizer::detail
