// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "merge_table.hpp"

namespace millrace::tokenizer::detail {

/// What GPT-2's files come to once they are read; shared by encoders, never changed.
struct gpt2_model {
  static constexpr std::string_view end_of_text = "<|endoftext|>";

  /// A token's bytes.
  struct token {
    std::int32_t id = 0;
    std::string bytes;
  };

  merge_table merges;
  std::array<std::int32_t, 256> byte_ids;
  std::vector<token> tokens;  ///< by ascending id
  std::int32_t end_of_text_id = 0;
  std::string fingerprint;

  /// The token of that id, or null.
  const token* find(std::int64_t id) const noexcept;
};

/// @throws io_error, format_error  as gpt2_tokenizer says.
gpt2_model load_gpt2_model(const std::filesystem::path& vocab_file,
                           const std::filesystem::path& merge_file);

}  // namespace millrace::tokenizer::detail
