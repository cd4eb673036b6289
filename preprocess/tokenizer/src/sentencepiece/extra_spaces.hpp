// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "composed/interfaces.hpp"

namespace millrace::tokenizer::detail {

/// A text in which a mark, U+262F between two spaces, stands where a model would drop spaces: in
/// place of one at the start and of one at the end, and between any two. White space at the end of
/// all that goes. That is, in Python:
///
///   re.sub(r'(?<= )(?= )|^ | $', ' \u262f ', text).rstrip()
void mark_extra_spaces(std::string_view text, std::string& marked);

/// An engine that keeps spaces which the model of `inner` drops, as Megatron does when it is told
/// not to ignore extra white space: marks them, and encodes each stretch up to a mark with that
/// mark, but without its last id.
std::unique_ptr<const section_engine> make_extra_space_engine(
    std::unique_ptr<const section_engine> inner);

}  // namespace millrace::tokenizer::detail
