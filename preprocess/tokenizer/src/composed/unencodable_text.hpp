// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <millrace/error.hpp>

namespace millrace::tokenizer::detail {

/// Thrown for a text that cannot be encoded. Normalizers and pre-tokenizers cannot return a fault,
/// so they throw this. composed_tokenizer turns it into an encode_fault.
class unencodable_text : public error {
 public:
  explicit unencodable_text(const std::string& problem) : error(problem) {}
};

}  // namespace millrace::tokenizer::detail
