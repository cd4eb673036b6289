// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "sentencepiece/ascii_seams.hpp"
#include "sentencepiece/raw_characters.hpp"
#include "sentencepiece/seam_table.hpp"
#include "split/instruction_set.hpp"
#include "split/word_splitter.hpp"

namespace millrace::tokenizer::detail {

/// Cuts a text as it is given, before normalization, into fragments that encode each on its own.
///
/// A cut is between two characters that are not odd, so that what each side is normalized to does
/// not depend on the other, and where no piece has the two as neighbours, so that nothing that an
/// engine looks at reaches over it. Of such places it takes those that words end at: before spaces,
/// between letters or digits and others, and among Chinese, Japanese and Korean characters. More
/// would make more fragments, and a word comes again as a whole.
///
/// Where runs of spaces become one, and no piece has a space behind anything, it also cuts before
/// the last of a run: what comes before it gives nothing, so that a word comes behind one space
/// whatever it is indented by. That part of the run has to be normalized to nothing.
/// Immutable, shared by threads.
class fragment_cutter final : public word_splitter {
 public:
  /// @param seams, characters  outlive this
  /// @param joins_spaces  runs of spaces become one
  /// @pre characters.is_known()
  fragment_cutter(const seam_table& seams, const raw_characters& characters, bool joins_spaces,
                  instruction_set set);

  std::size_t next_ends(std::string_view text, std::size_t begin,
                        std::span<std::size_t> ends) const noexcept override;

 private:
  std::size_t next_ends_portable(std::string_view text, std::size_t begin,
                                 std::span<std::size_t> ends) const noexcept;
  std::size_t next_ends_avx512(std::string_view text, std::size_t begin,
                               std::span<std::size_t> ends) const noexcept;
  struct latest;
  bool cuts_before(std::string_view text, std::size_t begin, std::size_t at,
                   latest& last) const noexcept;
  bool cuts(std::uint32_t x, std::uint32_t y) const noexcept;
  bool may_change(std::string_view text, std::size_t at) const noexcept;
  bool is_space(char c) const noexcept {
    return characters_->is_space(static_cast<unsigned char>(c));
  }

  const seam_table* seams_;
  const raw_characters* characters_;
  bool cuts_spaces_;  // before the last of several
  instruction_set set_;
  ascii_seams ascii_;
};

}  // namespace millrace::tokenizer::detail
