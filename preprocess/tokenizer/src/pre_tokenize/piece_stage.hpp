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

  /// As cut(), and says what the pieces were made from.
  ///
  /// @param piece     not empty
  /// @param at_start  as section::at_start
  virtual void cut_aligned(const aligned_text& piece, bool at_start, stage_scratch& scratch,
                           aligned_pieces& out) const = 0;

  /// True if the pieces depend on section::at_start, which only the first stage knows.
  virtual bool asks_for_start() const noexcept { return false; }
};
/// Has the interface of piece_list for the pieces of one text, and notes where they are in it.
class place_list {
 public:
  explicit place_list(std::string_view text) : text_(text) {}

  /// @param piece  a part of the text
  void add(std::string_view piece) {
    if (piece.empty()) return;
    const auto begin = static_cast<std::size_t>(piece.data() - text_.data());
    places_.push_back({begin, begin + piece.size()});
  }
  const std::vector<byte_span>& places() const noexcept { return places_; }

 private:
  std::string_view text_;
  std::vector<byte_span> places_;
};

/// A stage whose pieces are unchanged parts of its input. `Stage` must provide
///
///   template <class Out>
///   void cut_to(const section& piece, stage_scratch& scratch, Out& out) const;
///
/// which calls out.add(part) for each piece, in order. Out is piece_list or place_list.
template <class Stage>
class cutting_stage : public piece_stage {
 public:
  void cut(const section& piece, stage_scratch& scratch, piece_list& out) const final {
    static_cast<const Stage&>(*this).cut_to(piece, scratch, out);
  }
  void cut_aligned(const aligned_text& piece, bool at_start, stage_scratch& scratch,
                   aligned_pieces& out) const final {
    place_list found(piece.text());
    static_cast<const Stage&>(*this).cut_to({piece.text(), at_start}, scratch, found);
    for (const byte_span place : found.places()) out.add(piece, place.begin, place.end);
  }
};

using stage_pointer = std::unique_ptr<const piece_stage>;

/// Runs the stages in order. Only the first stage may return true from asks_for_start().
std::unique_ptr<const pre_tokenizer> make_staged_pre_tokenizer(std::vector<stage_pointer> stages);

}  // namespace millrace::tokenizer::detail
