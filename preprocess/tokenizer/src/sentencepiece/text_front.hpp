// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sentencepiece/fragment_cutter.hpp"
#include "sentencepiece/model_file.hpp"
#include "sentencepiece/raw_characters.hpp"
#include "sentencepiece/seam_table.hpp"
#include "sentencepiece/symbol_matcher.hpp"
#include "sentencepiece/text_normalizer.hpp"

namespace millrace::tokenizer::detail {

/// A piece that text can match, in the form that engines see text in: with a space for U+2581,
/// unless the model does not escape spaces.
struct text_piece {
  std::string text;
  std::int32_t id = 0;
  float score = 0;
  piece_type type = piece_type::normal;  ///< normal, user_defined or unused
};

/// The pieces of a model that text can match.
std::vector<text_piece> text_pieces_of(const sentencepiece_model& model);

/// The user-defined ones among them.
symbol_matcher user_symbols_of(const std::vector<text_piece>& pieces);

seam_table seams_of(const std::vector<text_piece>& pieces);

/// What comes before an engine: texts as they are given to texts as models see them, whole or,
/// where the model allows it, fragment by fragment. Immutable, shared by threads.
class text_front {
 public:
  using place = text_normalizer::place;

  /// @param seams  of the model's pieces; outlives this
  /// @throws format_error  the model's charsmap is malformed
  text_front(const sentencepiece_model& model, const seam_table& seams, instruction_set set);

  text_front(const text_front&) = delete;
  text_front& operator=(const text_front&) = delete;

  /// Whether fragments of texts may be normalized each on its own; nearly all of them.
  bool cuts_raw_text() const noexcept { return cutter_.has_value(); }
  /// Of texts that are normalized already.
  /// @pre !cuts_raw_text()
  const fragment_cutter& normalized_cutter() const noexcept { return *normalized_cutter_; }

  /// Whether fragments of this text may.
  bool takes_fragments(std::string_view text) const noexcept {
    return cutter_ && (plain_ || text.find('\0') == std::string_view::npos);
  }

  /// What is left of a text without spaces at its end that normalization drops.
  /// @pre takes_fragments(text)
  std::string_view without_end(std::string_view text) const noexcept;
  /// Where a text's fragments cease to be sure of not being stripped, as only spaces, or characters
  /// that may become some, come behind it: where its last other character begins, or its end.
  std::size_t sure_end(std::string_view text) const noexcept;

  /// @pre takes_fragments(the text)
  const fragment_cutter& cutter() const noexcept { return *cutter_; }

  /// @param part    a fragment, or several from the start of a text
  /// @param buffer  may be overwritten; the result may point into it
  std::string_view normalize_part(std::string_view part, place where, std::string& buffer,
                                  growth_limit& limit) const {
    return normalizer_.normalize_part(part, where, buffer, limit);
  }
  /// Whether texts that have `text` in them may be cut there at `at`, so that nothing but unknown
  /// characters that become one reaches over it, neither in normalization nor in an engine.
  bool may_cut(std::string_view text, std::size_t at) const noexcept;

  /// A fragment that neither begins nor ends its text.
  std::string_view normalize_part(std::string_view part, std::string& buffer,
                                  growth_limit& limit) const;

  std::string_view normalize(std::string_view text, std::string& buffer) const {
    return normalizer_.normalize(text, buffer);
  }

  /// Whether a fragment that is normalized, or a part of it, could have been given so.
  bool is_its_own(std::string_view normalized) const noexcept;

 private:
  text_normalizer normalizer_;
  raw_characters characters_;
  bool folds_symbol_;  // U+2581 becomes a space
  bool plain_;         // no rules, and every space counts
  std::optional<fragment_cutter> cutter_;
  raw_characters normalized_characters_;
  std::optional<fragment_cutter> normalized_cutter_;
};

}  // namespace millrace::tokenizer::detail
