// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::tokenizer {

/// The ids that stand for structure and not for text, ascending: the end-of-document id, the ids of
/// a template, and added tokens that the files mark as special.
std::vector<std::int32_t> special_ids(const tokenizer& of);

}  // namespace millrace::tokenizer
