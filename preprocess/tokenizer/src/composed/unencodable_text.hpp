// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <millrace/error.hpp>

namespace millrace::tokenizer::detail {

/// A text that has no ids, found where only text goes in and out: in a normalizer or a
/// pre-tokenizer. A composed_tokenizer makes an encode_fault of it.
class unencodable_text : public error {
 public:
  explicit unencodable_text(const std::string& problem) : error(problem) {}
};

}  // namespace millrace::tokenizer::detail
