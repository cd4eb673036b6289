// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/text_front.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

// Creates a matcher for the user-defined symbols in raw text.
symbol_matcher raw_symbols_of(const sentencepiece_model& model) {
  std::vector<std::pair<std::string_view, std::int32_t>> symbols;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    if (model.pieces[id].type == piece_type::user_defined) {
      symbols.emplace_back(model.pieces[id].text, static_cast<std::int32_t>(id));
    }
  }
  return symbol_matcher(byte_trie(std::move(symbols)));
}

// True if normalization would not change the characters of any user-defined symbol. Then no cut at
// a seam is inside a symbol. (A seam is a place where a text can be cut without changing its ids.)
bool symbols_are_plain(const sentencepiece_model& model, const raw_characters& characters) {
  return std::ranges::all_of(model.pieces, [&](const sentencepiece_model::piece& piece) {
    return piece.type != piece_type::user_defined ||
           (characters.all_plain(piece.text) && piece.text.find(' ') == std::string_view::npos &&
            piece.text.find('\0') == std::string_view::npos &&
            piece.text.find(space_symbol) == std::string_view::npos);
  });
}

}  // namespace

std::vector<text_piece> text_pieces_of(const sentencepiece_model& model) {
  std::vector<text_piece> pieces;
  pieces.reserve(model.pieces.size());
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const auto& piece = model.pieces[id];
    if (piece.type != piece_type::normal && piece.type != piece_type::user_defined &&
        piece.type != piece_type::unused) {
      continue;
    }
    if (piece.text.find('\0') != std::string_view::npos) continue;  // as SentencePiece does
    text_piece kept{std::string(piece.text), static_cast<std::int32_t>(id), piece.score,
                    piece.type};
    if (model.normalizer.escape_whitespaces) {
      // The model sees every space in a text as U+2581, so a piece with a space never matches.
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
    result.reserve(pieces.size());
    for (const text_piece& piece : pieces) result.push_back(piece.text);
    return result;
  }();
  return seam_table(texts);
}

text_front::text_front(const sentencepiece_model& model, const seam_table& seams,
                       instruction_set set)
    : normalizer_(model.normalizer, model.whitespace_as_suffix, raw_symbols_of(model),
                  space_form::blank),
      characters_(normalizer_.rules(), model.normalizer.escape_whitespaces),
      folds_symbol_(model.normalizer.escape_whitespaces),
      plain_(normalizer_.rules().empty() && !normalizer_.joins_spaces()) {
  const bool has_suffix = model.whitespace_as_suffix && model.normalizer.add_dummy_prefix;
  if (characters_.is_known() && !has_suffix && symbols_are_plain(model, characters_)) {
    cutter_.emplace(seams, characters_, normalizer_.joins_spaces(), set);
  } else {
    normalized_cutter_.emplace(seams, normalized_characters_, false, set);
  }
}

bool text_front::may_cut(std::string_view text, std::size_t at) const noexcept {
  if (!cutter_) return false;
  // Pass the cutter one more character after the one at `at`, because a rule may combine these two
  // characters. A cut between these two does not matter, because only the first cut counts.
  const std::size_t next = at + code_point_at(text, at).size_bytes;
  if (next == text.size()) return false;
  const std::size_t left = character_before(text, at);
  const code_point before = code_point_at(text, left);
  if (characters_.is_odd(before.value) || characters_.is_space(before.value)) return false;
  const std::size_t end = next + code_point_at(text, next).size_bytes;
  std::size_t first_end = 0;
  cutter_->next_ends(text.substr(left, end - left), 0, std::span(&first_end, 1));
  return first_end == at - left;
}

std::string_view text_front::without_end(std::string_view text) const noexcept {
  if (!normalizer_.joins_spaces()) return text;
  while (!text.empty() && characters_.is_space(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  return text;
}

std::size_t text_front::sure_end(std::string_view text) const noexcept {
  if (!normalizer_.joins_spaces()) return text.size();
  for (std::size_t end = text.size(); end != 0;) {
    std::size_t at = end - 1;
    while (at > 0 && end - at < 4 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    const std::uint32_t character = code_point_at(text, at).value;
    if (!characters_.is_odd(character) && !characters_.is_space(character)) {
      return end == text.size() ? end : at;
    }
    end = at;
  }
  return 0;
}

std::string_view text_front::normalize_part(std::string_view part, std::string& buffer,
                                            growth_limit& limit) const {
  if (is_its_own(part) &&
      !(plain_ && folds_symbol_ && part.find(space_symbol) != std::string_view::npos)) {
    return part;
  }
  return normalizer_.normalize_part(part, {}, buffer, limit);
}

bool text_front::is_its_own(std::string_view normalized) const noexcept {
  if (!cutter_ || plain_) return true;
  if (normalizer_.joins_spaces()) {
    const std::size_t space = normalized.find(' ', 1);
    if (space != std::string_view::npos || normalized == " ") return false;
  }
  return characters_.all_plain(normalized);
}

}  // namespace millrace::tokenizer::detail
