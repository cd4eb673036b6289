// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "composed/interfaces.hpp"

namespace millrace::tokenizer::detail {

/// The pieces of a section, in order: each is one word for the model. Reused from section to
/// section.
struct piece_list {
  std::string text;               ///< of all pieces, one after another
  std::vector<std::size_t> ends;  ///< of each piece in `text`; no piece is empty

  void clear() noexcept {
    text.clear();
    ends.clear();
  }
  /// Appends a piece, unless it is empty.
  void add(std::string_view piece) {
    if (piece.empty()) return;
    text += piece;
    ends.push_back(text.size());
  }
  /// What was appended to `text` since the last end becomes a piece, unless it is empty.
  void close() {
    if (text.size() != (ends.empty() ? 0 : ends.back())) ends.push_back(text.size());
  }
};

/// Cuts a section into pieces; it may change, drop and add characters. Immutable, shared by
/// threads.
///
/// The general form, for whatever a file asks for; word_splitter is the fast one, for the patterns
/// that are known by name.
class pre_tokenizer {
 public:
  virtual ~pre_tokenizer() = default;

  /// Overwrites `out`.
  virtual void split(const section& part, piece_list& out) const = 0;
};

}  // namespace millrace::tokenizer::detail
