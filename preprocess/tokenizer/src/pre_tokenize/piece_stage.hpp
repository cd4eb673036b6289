// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pre_tokenize/pre_tokenizer.hpp"
#include "pre_tokenize/split_behavior.hpp"
#include "regex/regex_memory.hpp"

namespace millrace::tokenizer::detail {

/// Memory that stages work in, so that a piece costs no allocation.
struct stage_scratch {
  std::vector<stretch> stretches;
  std::string text;
  regex_memory matching;
};

/// One pre-tokenizer of a sequence: what it makes of one piece of those before it. Immutable,
/// shared by threads.
class piece_stage {
 public:
  virtual ~piece_stage() = default;

  /// Appends to `out`.
  ///
  /// @param piece  not empty
  virtual void cut(const section& piece, stage_scratch& scratch, piece_list& out) const = 0;

  /// Whether pieces depend on section::at_start, which is known only to the first stage.
  virtual bool asks_for_start() const noexcept { return false; }
};
using stage_pointer = std::unique_ptr<const piece_stage>;

/// Stages one after another. No stage but the first may ask for the start.
std::unique_ptr<const pre_tokenizer> make_staged_pre_tokenizer(std::vector<stage_pointer> stages);

}  // namespace millrace::tokenizer::detail
