// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "regex/program.hpp"

namespace millrace::tokenizer::detail {

/// A regular expression (parse_pattern.hpp says which), matched by backtracking as Oniguruma does.
/// Immutable, shared by threads.
///
/// What may be tried later lies on a heap stack, so no text is too long, and a run of characters
/// of a class takes one place on it. An attempt that goes back very often remembers where it has
/// been: unlike in other engines of this kind, time does not grow exponentially with any text.
class regex {
 public:
  /// Memory of a search, to be kept from one to the next.
  struct scratch {
    struct choice {
      std::size_t step;
      std::size_t place;
      std::size_t least;  ///< of a run: where it may be cut back to
      enum class kind : std::uint8_t { fork, run, slot } what;
    };
    std::vector<choice> choices;
    std::vector<std::size_t> slots;
  };

  struct match {
    std::size_t begin;
    std::size_t end;
  };

  /// @param pattern  valid UTF-8
  /// @throws pattern_error
  explicit regex(std::string_view pattern);

  /// Whether it may match the empty text; false is sure.
  bool may_match_empty() const noexcept { return may_match_empty_; }

  /// The first match that begins at `from` or behind it; what lies before is there to look back
  /// at. The next one to look for behind a match is the business of regex_splitter.cpp.
  ///
  /// @param text  valid UTF-8, as are its parts before and behind `from`
  std::optional<match> find(std::string_view text, std::size_t from, scratch& memory) const;

 private:
  class machine;

  program program_;
  bool may_match_empty_;
};

}  // namespace millrace::tokenizer::detail
