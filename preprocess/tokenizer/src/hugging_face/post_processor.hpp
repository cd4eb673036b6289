// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "hugging_face/json_node.hpp"

namespace millrace::tokenizer::detail {

/// The ids that a post-processor puts around those of a text.
struct text_template {
  std::vector<std::int32_t> before;
  std::vector<std::int32_t> behind;
};

/// Reads the entry "post_processor" for single texts: ByteLevel (which knows only of offsets),
/// TemplateProcessing, BertProcessing, RobertaProcessing, and a Sequence with one of them at most.
///
/// @throws format_error  another type, or a template in which the text is not there exactly once.
text_template read_post_processor(const json_node& processor);

}  // namespace millrace::tokenizer::detail
