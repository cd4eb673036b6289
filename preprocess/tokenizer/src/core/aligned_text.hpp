// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

#include "unicode/changed_character.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {

/// Widens `span` to whole characters of `text`.
/// @pre span.begin <= span.end <= text.size()
inline byte_span whole_characters(std::string_view text, byte_span span) noexcept {
  if (span.begin < text.size()) {
    while (span.begin > 0 && is_continuation(text[span.begin])) --span.begin;
  }
  while (span.end < text.size() && is_continuation(text[span.end])) ++span.end;
  return span;
}

/// A text, and for each of its bytes the span of an original text that it was made from. All bytes
/// of a character have the same span.
///
/// The rules by which a step passes spans on are those of Hugging Face's `NormalizedString`, so
/// that spans of tokens equal its offsets. For example, a space that is put before a text counts as
/// made from the text's first character, and an accent that is composed with its letter does not
/// belong to any span.
///
/// Each function takes time linear in the size of the text.
class aligned_text {
 public:
  aligned_text() = default;
  /// The original text itself: each character is made from itself.
  explicit aligned_text(std::string_view original);

  std::string_view text() const noexcept { return text_; }
  bool empty() const noexcept { return text_.empty(); }

  /// The span of the original text that the bytes from `begin` to `end` were made from.
  /// @pre begin < end <= text().size()
  byte_span origin(std::size_t begin, std::size_t end) const noexcept {
    assert(begin < end && end <= origins_.size());
    return {origins_[begin].begin, origins_[end - 1].end};
  }

  void clear() noexcept {
    text_.clear();
    origins_.clear();
  }
  /// Appends the bytes of `from` from `begin` to `end`, with their spans.
  void append(const aligned_text& from, std::size_t begin, std::size_t end);

  /// Keeps only the bytes from `begin` to `end`.
  void keep(std::size_t begin, std::size_t end);

  /// Replaces the text by `characters`.
  void transform(std::span<const changed_character> characters);

  /// Drops the characters for which keeps(point) is false.
  template <class Keeps>
  void filter(const Keeps& keeps);

  /// Replaces each character by to(point).
  template <class To>
  void map(const To& to);

  /// Puts `prefix` before the text, unless the text is empty.
  /// @pre prefix is not empty
  void prepend(std::string_view prefix);

  /// Replaces each byte by the character that represents it in GPT-2's files.
  void spell_bytes();

  class replacement;

 private:
  void put(std::uint32_t point, byte_span origin);

  std::string text_;
  std::vector<byte_span> origins_;  // by byte of text_
};

/// Replaces parts of a text. Call replace() for each part, in order, then finish(), which changes
/// the text.
class aligned_text::replacement {
 public:
  explicit replacement(aligned_text& of) : of_(&of) {}
  /// The content counts as made from the last character of the part.
  /// @pre begin < end, and begin is not before the end of the previous part
  void replace(std::size_t begin, std::size_t end, std::string_view content);
  void finish();

 private:
  aligned_text* of_;
  aligned_text made_;
  std::size_t copied_ = 0;
};

template <class Keeps>
void aligned_text::filter(const Keeps& keeps) {
  std::size_t kept = 0;
  for (std::size_t at = 0; at < text_.size();) {
    const code_point point = code_point_at(text_, at);
    const std::size_t end = at + point.size_bytes;
    if (!keeps(point.value)) {
      at = end;
      continue;
    }
    for (; at < end; ++at, ++kept) {
      text_[kept] = text_[at];
      origins_[kept] = origins_[at];
    }
  }
  text_.resize(kept);
  origins_.resize(kept);
}

template <class To>
void aligned_text::map(const To& to) {
  aligned_text made;
  made.text_.reserve(text_.size());
  made.origins_.reserve(text_.size());
  for (std::size_t at = 0; at < text_.size();) {
    const code_point point = code_point_at(text_, at);
    made.put(to(point.value), origins_[at]);
    at += point.size_bytes;
  }
  *this = std::move(made);
}

}  // namespace millrace::tokenizer::detail
