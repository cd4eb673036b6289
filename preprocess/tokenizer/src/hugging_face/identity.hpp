// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "hugging_face/hugging_face_tokenizer.hpp"
#include "unicode/unicode_classes.hpp"

namespace millrace::tokenizer::detail {

/// Returns the part of a tokenizer's identity that its files do not determine, for fingerprints.
/// Records the policy `as_reference` as `allow`, because both give the same ids.
inline std::string identity_of(const hugging_face_options& options) {
  const bool allowed = options.in_text == special_tokens_in_text::as_reference;
  const auto in_text = allowed ? special_tokens_in_text::allow : options.in_text;
  std::string identity = std::string("include_special_tokens ") +
                         (options.include_special_tokens ? "yes" : "no") + "\nin_text " +
                         std::to_string(static_cast<int>(in_text)) + "\nunicode " +
                         unicode_version + "\n";
  for (const std::string& token : options.special_tokens) {
    identity += "special " + std::to_string(token.size()) + " " + token + "\n";
  }
  return identity;
}

}  // namespace millrace::tokenizer::detail
