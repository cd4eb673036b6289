// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/text_front.hpp"

#include <utility>

namespace millrace::tokenizer::detail {
namespace {

// The user-defined symbols as they stand in raw text.
symbol_matcher raw_symbols_of(const sentencepiece_model& model) {
  std::vector<std::pair<std::string_view, std::int32_t>> symbols;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    if (model.pieces[id].type == piece_type::user_defined) {
      symbols.emplace_back(model.pieces[id].text, static_cast<std::int32_t>(id));
    }
  }
  return symbol_matcher(byte_trie(std::move(symbols)));
}

bool contains_symbol(std::string_view text) {
  // Its last byte is rarer in most scripts than its first.
  for (std::size_t at = text.find(space_symbol[2]); at != std::string_view::npos;
       at = text.find(space_symbol[2], at + 1)) {
    if (at >= 2 && text[at - 1] == space_symbol[1] && text[at - 2] == space_symbol[0]) return true;
  }
  return false;
}

}  // namespace

std::vector<text_piece> text_pieces_of(const sentencepiece_model& model) {
  std::vector<text_piece> pieces;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const auto& piece = model.pieces[id];
    if (piece.type != piece_type::normal && piece.type != piece_type::user_defined &&
        piece.type != piece_type::unused) {
      continue;
    }
    if (piece.text.find('\0') != std::string_view::npos) continue;  // SentencePiece leaves it out
    text_piece kept{std::string(piece.text), static_cast<std::int32_t>(id), piece.score,
                    piece.type};
    if (model.normalizer.escape_whitespaces) {
      // No text that a model sees has a space that is not U+2581.
      if (piece.text.find(' ') != std::string_view::npos) continue;
      kept.text.clear();
      for (std::size_t at = 0; at < piece.text.size(); ++at) {
        const bool symbol = piece.text.substr(at, space_symbol.size()) == space_symbol;
        kept.text += symbol ? ' ' : piece.text[at];
        if (symbol) at += space_symbol.size() - 1;
      }
    }
    pieces.push_back(std::move(kept));
  }
  return pieces;
}

symbol_matcher user_symbols_of(const std::vector<text_piece>& pieces) {
  std::vector<std::pair<std::string_view, std::int32_t>> symbols;
  for (const text_piece& piece : pieces) {
    if (piece.type == piece_type::user_defined) symbols.emplace_back(piece.text, piece.id);
  }
  return symbol_matcher(byte_trie(std::move(symbols)));
}

seam_table seams_of(const std::vector<text_piece>& pieces) {
  const std::vector<std::string_view> texts = [&] {
    std::vector<std::string_view> result;
    for (const text_piece& piece : pieces) result.push_back(piece.text);
    return result;
  }();
  return seam_table(texts);
}

text_front::text_front(const sentencepiece_model& model)
    : normalizer_(model.normalizer, model.whitespace_as_suffix, raw_symbols_of(model),
                  space_form::blank),
      as_it_is_(normalizer_.keeps_characters() &&
                !(model.whitespace_as_suffix && model.normalizer.add_dummy_prefix)),
      folds_symbol_(model.normalizer.escape_whitespaces),
      dummy_prefix_(model.normalizer.add_dummy_prefix) {}

text_front::prepared text_front::prepare(std::string_view text, std::string& buffer) const {
  if (as_it_is_ && !text.empty() && !(folds_symbol_ && contains_symbol(text))) {
    return {text, dummy_prefix_};
  }
  return {normalizer_.normalize(text, buffer), false};
}

}  // namespace millrace::tokenizer::detail
