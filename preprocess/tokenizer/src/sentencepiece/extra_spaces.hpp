// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/interfaces.hpp"

namespace millrace::tokenizer::detail {

/// Writes `text` to `marked`, with a mark wherever a model would drop spaces. The mark is U+262F
/// with a space on each side. It replaces a space at the start or the end of the text, and is
/// inserted between any two adjacent spaces. Then strips white space from the end. In Python:
///
///   re.sub(r'(?<= )(?= )|^ | $', ' \u262f ', text).rstrip()
void mark_extra_spaces(std::string_view text, std::string& marked);

/// Creates an engine that keeps the spaces that the model of `inner` drops. Megatron keeps them
/// too, unless it ignores extra white space. The engine marks these spaces. Then it encodes each
/// stretch of text up to and including the next U+262F, and drops the last id of each stretch.
std::unique_ptr<const section_engine> make_extra_space_engine(
    std::unique_ptr<const section_engine> inner);

}  // namespace millrace::tokenizer::detail
