// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pre_tokenize/pre_tokenizer.hpp"
#include "pre_tokenize/split_behavior.hpp"
#include "regex/pcre2_pattern.hpp"

namespace millrace::tokenizer::detail {

/// Scratch memory that stages reuse to avoid an allocation per piece.
struct stage_scratch {
  std::vector<stretch> stretches;
  std::string text;
  regex_memory matching;
};

/// One stage of a pre-tokenizer that is a sequence of stages. Cuts each piece that the previous
/// stage produced. Immutable; threads may share it.
class piece_stage {
 public:
  virtual ~piece_stage() = default;

  /// Appends the pieces of `piece` to `out`.
  ///
  /// @param piece  not empty
  virtual void cut(const section& piece, stage_scratch& scratch, piece_list& out) const = 0;

  /// True if the pieces depend on section::at_start, which only the first stage knows.
  virtual bool asks_for_start() const noexcept { return false; }
};
using stage_pointer = std::unique_ptr<const piece_stage>;

/// Runs the stages in order. Only the first stage may return true from asks_for_start().
std::unique_ptr<const pre_tokenizer> make_staged_pre_tokenizer(std::vector<stage_pointer> stages);

}  // namespace millrace::tokenizer::detail
