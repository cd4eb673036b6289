// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::tokenizer::detail {

/// Encodes one word at a time, for one thread.
class word_encoder {
 public:
  virtual ~word_encoder() = default;

  /// Appends the ids of `word`, which is not empty. Equal words give equal ids.
  /// @return std::nullopt, or a fault whose offset is relative to `word`.
  virtual std::optional<encode_fault> encode(std::string_view word, id_buffer& ids) = 0;
};

/// Turns words into ids. Immutable; threads may share it.
class word_model {
 public:
  virtual ~word_model() = default;

  /// @return an encoder. This model must outlive the encoder.
  virtual std::unique_ptr<word_encoder> make_encoder() const = 0;
};

}  // namespace millrace::tokenizer::detail
