// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <millrace/error.hpp>

namespace millrace::tokenizer::detail {

/// A text that cannot be encoded. A normalizer or a pre-tokenizer throws it, as it cannot return a
/// fault. A composed_tokenizer turns it into an encode_fault.
class unencodable_text : public error {
 public:
  explicit unencodable_text(const std::string& problem) : error(problem) {}
};

}  // namespace millrace::tokenizer::detail
