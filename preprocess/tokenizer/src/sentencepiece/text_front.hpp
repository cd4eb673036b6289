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

/// A piece that text can match, in the form that the engines use. If the model escapes spaces, each
/// U+2581 of the piece is replaced by a space.
struct text_piece {
  std::string text;
  std::int32_t id = 0;
  float score = 0;
  piece_type type = piece_type::normal;  ///< normal, user_defined or unused
};

/// The pieces of a model that text can match.
std::vector<text_piece> text_pieces_of(const sentencepiece_model& model);

/// Creates a matcher for the user-defined pieces among `pieces`.
symbol_matcher user_symbols_of(const std::vector<text_piece>& pieces);

seam_table seams_of(const std::vector<text_piece>& pieces);

/// Prepares raw texts for an engine. Normalizes a text fragment by fragment if the model allows it,
/// otherwise as a whole. Immutable; threads may share it.
class text_front {
 public:
  using place = text_normalizer::place;

  /// @param seams  the seams of the model's pieces: the places where a text can be cut without
  ///               changing its ids; must outlive this object
  /// @throws format_error  the model's charsmap is malformed
  text_front(const sentencepiece_model& model, const seam_table& seams, instruction_set set);

  text_front(const text_front&) = delete;
  text_front& operator=(const text_front&) = delete;

  /// True if the fragments of nearly all texts can be normalized independently.
  bool cuts_raw_text() const noexcept { return cutter_.has_value(); }
  /// The cutter for texts that are already normalized.
  /// @pre !cuts_raw_text()
  const fragment_cutter& normalized_cutter() const noexcept { return *normalized_cutter_; }

  /// True if the fragments of this text can be normalized independently.
  bool takes_fragments(std::string_view text) const noexcept {
    return cutter_ && (plain_ || text.find('\0') == std::string_view::npos);
  }

  /// Returns `text` without the spaces at its end, if normalization drops them.
  /// @pre takes_fragments(text)
  std::string_view without_end(std::string_view text) const noexcept;
  /// Returns the offset up to which fragments do not depend on how the end of the text is stripped.
  /// This is the beginning of the last character that neither is a space nor can become one, or 0
  /// if there is no such character. If that character ends the text, or if nothing is ever
  /// stripped, the result is the end of the text.
  std::size_t sure_end(std::string_view text) const noexcept;

  /// @pre takes_fragments(the text)
  const fragment_cutter& cutter() const noexcept { return *cutter_; }

  /// @param part    a fragment, or several fragments at the start of a text
  /// @param buffer  may be overwritten; the result may point into `buffer`
  std::string_view normalize_part(std::string_view part, place where, std::string& buffer,
                                  growth_limit& limit) const {
    return normalizer_.normalize_part(part, where, buffer, limit);
  }
  /// True if every text that contains `text` can be cut at offset `at` of `text`. Then neither
  /// normalization nor an engine looks across the cut, with one exception: adjacent unknown
  /// characters become one id.
  bool may_cut(std::string_view text, std::size_t at) const noexcept;

  /// Normalizes a fragment that is neither the first nor the last of its text.
  std::string_view normalize_part(std::string_view part, std::string& buffer,
                                  growth_limit& limit) const;

  /// As text_normalizer::normalize_places, for a whole section.
  void normalize_places(std::string_view text, bool continues, std::string& out,
                        std::vector<std::size_t>& places, growth_limit& limit) const {
    normalizer_.normalize_places(text, {!continues, true}, out, places, limit);
  }

  std::string_view normalize(std::string_view text, std::string& buffer) const {
    return normalizer_.normalize(text, buffer);
  }

  /// `normalized` is a normalized fragment, or a part of one. Returns true if `normalized` would
  /// not change if it were normalized again as a raw fragment.
  bool is_its_own(std::string_view normalized) const noexcept;

 private:
  text_normalizer normalizer_;
  raw_characters characters_;
  bool folds_symbol_;  // U+2581 becomes a space
  bool plain_;         // no rules, and no spaces are dropped
  std::optional<fragment_cutter> cutter_;
  raw_characters normalized_characters_;
  std::optional<fragment_cutter> normalized_cutter_;
};

}  // namespace millrace::tokenizer::detail
