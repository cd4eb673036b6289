// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sentencepiece/model_file.hpp"
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

/// What comes before an engine: texts as they are given to texts as models see them.
class text_front {
 public:
  struct prepared {
    std::string_view text;
    bool space_before = false;  ///< a space belongs in front of it, which it does not have
  };

  /// @throws format_error  the model's charsmap is malformed
  explicit text_front(const sentencepiece_model& model);

  /// @param buffer  may be overwritten; the result may point into it
  prepared prepare(std::string_view text, std::string& buffer) const;

 private:
  text_normalizer normalizer_;
  bool as_it_is_;      // nothing changes but for spaces, and those where they are U+2581
  bool folds_symbol_;  // U+2581 becomes a space
  bool dummy_prefix_;
};

}  // namespace millrace::tokenizer::detail
