// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "composed/interfaces.hpp"

namespace millrace::tokenizer::detail {

/// Writes `text` to `marked`, with a mark wherever a model would drop spaces. The mark is U+262F
/// between two spaces. The mark replaces a space at the start and at the end of the text, and is
/// inserted between any two adjacent spaces. Then strips white space from the end. In Python:
///
///   re.sub(r'(?<= )(?= )|^ | $', ' \u262f ', text).rstrip()
void mark_extra_spaces(std::string_view text, std::string& marked);

/// Creates an engine that keeps the spaces that the model of `inner` drops, as Megatron does if it
/// does not ignore extra white space. The engine marks these spaces, encodes each stretch up to
/// U+262F together with that character, and drops the last id of each stretch.
std::unique_ptr<const section_engine> make_extra_space_engine(
    std::unique_ptr<const section_engine> inner);

}  // namespace millrace::tokenizer::detail
