// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/interfaces.hpp"

namespace millrace::tokenizer::detail {

/// The pieces of a section, in order. Each piece is one word for the model. The list is reused for
/// all sections.
struct piece_list {
  std::string text;               ///< all pieces, concatenated
  std::vector<std::size_t> ends;  ///< the end of each piece in `text`; no piece is empty

  void clear() noexcept {
    text.clear();
    ends.clear();
  }
  /// Appends a piece. Does nothing if the piece is empty.
  void add(std::string_view piece) {
    if (piece.empty()) return;
    text += piece;
    ends.push_back(text.size());
  }
  /// Ends a piece. The piece is the text that was appended after the previous piece. Does nothing
  /// if that text is empty.
  void close() {
    if (text.size() != (ends.empty() ? 0 : ends.back())) ends.push_back(text.size());
  }
};

/// The pieces of a section as in piece_list, and for each byte the span of the section that it was
/// made from.
struct aligned_pieces {
  aligned_text all;               ///< all pieces, concatenated
  std::vector<std::size_t> ends;  ///< the end of each piece in `all`; no piece is empty

  void clear() noexcept {
    all.clear();
    ends.clear();
  }
  /// Appends a piece. Does nothing if the piece is empty.
  void add(const aligned_text& from, std::size_t begin, std::size_t end) {
    if (begin == end) return;
    all.append(from, begin, end);
    ends.push_back(all.text().size());
  }
};

/// Cuts a section into pieces. May change, drop and add characters. Immutable; threads may share
/// it.
///
/// This is the general interface, for any pre-tokenizer that a file describes. word_splitter is the
/// fast interface, for patterns that have names.
class pre_tokenizer {
 public:
  virtual ~pre_tokenizer() = default;

  /// Overwrites `out` with the pieces of `part`.
  virtual void split(const section& part, piece_list& out) const = 0;

  /// As split(), and says what the pieces were made from. Several times slower.
  virtual void split_aligned(const section& part, aligned_pieces& out) const = 0;
};

}  // namespace millrace::tokenizer::detail
