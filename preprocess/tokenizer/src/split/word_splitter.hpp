// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace millrace::tokenizer::detail {

/// Cuts a section into pretokens, which cover it without gaps. Immutable, shared by threads.
///
/// A batch of ends a call, so that the call costs nothing a pretoken. A cut depends on what lies
/// behind it alone, never on what lies before: any pretoken's end is a place to go on from.
class word_splitter {
 public:
  virtual ~word_splitter() = default;

  /// Writes the ends of the pretokens that follow `begin`, as many as there are or as `ends` has
  /// room for, and returns their number: 0 only at the end of the section.
  ///
  /// @param section  valid UTF-8; on anything else the ends still advance and stay inside
  /// @pre `begin` is 0 or an end, ends is not empty
  virtual std::size_t next_ends(std::string_view section, std::size_t begin,
                                std::span<std::size_t> ends) const noexcept = 0;
};

}  // namespace millrace::tokenizer::detail
