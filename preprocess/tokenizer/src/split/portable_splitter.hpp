// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "split/splitters.hpp"

namespace millrace::tokenizer::detail {

/// The walkers themselves, on any machine.
std::unique_ptr<const word_splitter> make_portable_splitter(pattern pattern);

}  // namespace millrace::tokenizer::detail
