// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "split/word_splitter.hpp"

namespace millrace::tokenizer::detail {

/// GPT-2's pattern (r50k_split.hpp).
std::unique_ptr<const word_splitter> make_r50k_splitter();

}  // namespace millrace::tokenizer::detail
