// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace millrace::tokenizer::detail {

/// Ids to text. Immutable, shared by threads.
class detokenizer {
 public:
  virtual ~detokenizer() = default;

  /// As tokenizer::decode.
  virtual std::string decode(std::span<const std::int64_t> ids) const = 0;
};

}  // namespace millrace::tokenizer::detail
