// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "hugging_face/json_node.hpp"

namespace millrace::tokenizer::detail {

/// The ids that a post-processor adds before and after the ids of a text.
struct text_template {
  std::vector<std::int32_t> before;
  std::vector<std::int32_t> behind;
};

/// Reads the entry "post_processor" for single texts. The supported types are ByteLevel (which
/// affects only offsets), TemplateProcessing, BertProcessing and RobertaProcessing. In a Sequence,
/// at most one post-processor may add special tokens.
///
/// @throws format_error  the post-processor has another type, or the template does not contain the
///                       text exactly once.
text_template read_post_processor(const json_node& processor);

}  // namespace millrace::tokenizer::detail
