// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace millrace::tokenizer::detail {

/// Splits a section into pretokens, which cover it without gaps. Immutable; threads may share it.
///
/// Each call returns a batch of ends, so the cost of the virtual call per pretoken is negligible.
/// The end of a pretoken depends only on the text after its beginning. Splitting can therefore
/// resume at the end of any pretoken.
class word_splitter {
 public:
  virtual ~word_splitter() = default;

  /// Writes the ends of the pretokens that follow `begin`, until the section ends or `ends` is
  /// full. Returns how many ends were written: 0 only at the end of the section.
  ///
  /// @param section  valid UTF-8; on invalid input the ends still advance and stay in bounds
  /// @pre `begin` is 0 or the end of a pretoken, and `ends` is not empty
  virtual std::size_t next_ends(std::string_view section, std::size_t begin,
                                std::span<std::size_t> ends) const noexcept = 0;
};

}  // namespace millrace::tokenizer::detail
