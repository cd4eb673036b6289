// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "sentencepiece/raw_characters.hpp"
#include "sentencepiece/seam_table.hpp"
#include "split/splitters.hpp"

namespace millrace::tokenizer::detail {

/// Cuts a raw text, before normalization, into fragments that encode independently.
///
/// A cut meets two conditions. Neither character next to it is odd (raw_characters), so the
/// normalization of one side does not depend on the other side. And no piece contains the two
/// characters side by side, so nothing that an engine looks at spans the cut. Of the places that
/// meet both conditions, the cutter chooses the ends of words: before spaces, between letters or
/// digits and other characters, and between Chinese, Japanese or Korean characters. More cuts would
/// only give more fragments, whereas whole words recur.
///
/// If runs of spaces become one space and no piece has a space after another character, the cutter
/// also cuts before the last space of a run. The spaces before that cut give no ids. So a word
/// always follows exactly one space, regardless of the length of the run. When the caller
/// normalizes, it must drop the spaces before such a cut. Immutable; threads may share it.
class fragment_cutter final : public word_splitter {
 public:
  /// @param seams, characters  must outlive this object. A seam is a place where a text can be cut
  ///                           without changing its ids.
  /// @param joins_spaces  true if normalization replaces a run of spaces with one space
  /// @pre characters.is_known()
  fragment_cutter(const seam_table& seams, const raw_characters& characters, bool joins_spaces,
                  instruction_set set);

  std::size_t next_ends(std::string_view text, std::size_t begin,
                        std::span<std::size_t> ends) const noexcept override;

 private:
  std::size_t next_ends_portable(std::string_view text, std::size_t begin,
                                 std::span<std::size_t> ends) const noexcept;
  template <class Windows>
  std::size_t next_ends_in_windows(std::string_view text, std::size_t begin,
                                   std::span<std::size_t> ends) const noexcept;
  std::size_t next_ends_avx2(std::string_view text, std::size_t begin,
                             std::span<std::size_t> ends) const noexcept;
  std::size_t next_ends_avx512(std::string_view text, std::size_t begin,
                               std::span<std::size_t> ends) const noexcept;
  std::size_t next_ends_neon(std::string_view text, std::size_t begin,
                             std::span<std::size_t> ends) const noexcept;
  struct latest;
  bool cuts_before(std::string_view text, std::size_t begin, std::size_t at,
                   latest& last) const noexcept;
  bool cuts(std::uint32_t x, std::uint32_t y) const noexcept;
  bool may_change(std::string_view text, std::size_t at) const noexcept;
  std::uint64_t cuts_among(std::uint64_t asked, std::string_view text, std::size_t begin,
                           std::size_t at, latest& last) const noexcept;
  struct latest_threes;
  std::uint64_t cuts_among_threes(std::uint64_t leads, const char* window,
                                  latest_threes& last) const noexcept;
  std::uint64_t changes_among(std::uint64_t asked, std::string_view text,
                              std::size_t at) const noexcept;
  bool is_space(char c) const noexcept {
    return characters_->is_space(static_cast<unsigned char>(c));
  }

  const seam_table* seams_;
  const raw_characters* characters_;
  bool cuts_spaces_;  // cuts before the last space of a run
  instruction_set set_;
  ascii_seams ascii_;
};

}  // namespace millrace::tokenizer::detail
