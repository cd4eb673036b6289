// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/sentencepiece_decoder.hpp"

#include <cstddef>

#include <millrace/formats/detail/utf8.hpp>

#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {

sentencepiece_decoder::sentencepiece_decoder(const sentencepiece_model& model)
    : unk_surface_(model.unk_surface),
      drops_dummy_(model.normalizer.add_dummy_prefix || model.normalizer.remove_extra_whitespaces),
      drops_spaces_(model.normalizer.remove_extra_whitespaces) {
  pieces_.reserve(model.pieces.size());
  for (const auto& p : model.pieces) pieces_.push_back({std::string(p.text), p.type});
  for (unsigned byte = 0; model.byte_fallback && byte < 256; ++byte) {
    pieces_[static_cast<std::size_t>(model.byte_ids[byte])].text = static_cast<char>(byte);
  }
  if (model.denormalizer) {
    denormalizer_.emplace(*model.denormalizer, false, symbol_matcher(), space_form::symbol);
  }
}

// Appends `bytes` to `text`, with U+FFFD for each invalid byte, and clears `bytes`.
void sentencepiece_decoder::append_bytes(std::string& bytes, std::string& text) {
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const std::size_t size = formats::utf8_sequence_bytes(rest);
    text += size == 0 ? replacement_character : rest.substr(0, size);
    rest.remove_prefix(size == 0 ? 1 : size);
  }
  bytes.clear();
}

namespace {

// Replaces each U+2581 by a space.
std::string spaced(std::string_view piece) {
  std::string text;
  for (std::size_t at = 0; at < piece.size();) {
    const bool symbol = piece.substr(at, space_symbol.size()) == space_symbol;
    text += symbol ? ' ' : piece[at];
    at += symbol ? space_symbol.size() : 1;
  }
  return text;
}

}  // namespace

// The rules are those of decode() below.
std::optional<formats::token_texts> sentencepiece_decoder::texts() const {
  if (denormalizer_) return std::nullopt;
  formats::token_texts all;
  all.start = drops_dummy_ ? formats::token_texts::first_rule::until_text
                           : formats::token_texts::first_rule::none;
  all.runs = formats::token_texts::byte_rule::each;
  for (const piece& p : pieces_) {
    if (p.type == piece_type::byte) {
      if (p.text.size() != 1) return std::nullopt;
      all.add(p.text, formats::token_texts::is_byte);
      continue;
    }
    std::string_view kept = p.text;
    std::uint8_t flag = 0;
    if (p.type == piece_type::control) {
      kept = {};
    } else if (drops_dummy_ && kept.starts_with(space_symbol)) {
      kept.remove_prefix(space_symbol.size());
      if (!drops_spaces_) flag = formats::token_texts::ends_start;
    }
    if (p.type == piece_type::unknown) {
      all.add(unk_surface_, flag);
    } else if (p.type == piece_type::control) {
      all.add("");
    } else {
      all.add(spaced(p.text), spaced(kept), flag);
    }
  }
  all.end(replacement_character);
  return all;
}

std::string sentencepiece_decoder::decode(std::span<const std::int64_t> ids) const {
  std::string text;
  std::string bytes;
  bool at_start = true;  // true if a space may still be the dummy space
  for (const std::int64_t id : ids) {
    const bool known = id >= 0 && id < static_cast<std::int64_t>(pieces_.size());
    const piece* p = known ? &pieces_[static_cast<std::size_t>(id)] : nullptr;
    if (p != nullptr && p->type == piece_type::byte) {
      bytes += p->text;
      continue;
    }
    append_bytes(bytes, text);
    if (!text.empty()) at_start = false;
    if (p == nullptr) {
      text += replacement_character;
      continue;
    }
    if (p->type == piece_type::control) continue;

    std::string_view piece_text = p->text;
    bool dropped = false;
    if (at_start && drops_dummy_ && piece_text.starts_with(space_symbol)) {
      piece_text.remove_prefix(space_symbol.size());
      dropped = !drops_spaces_;  // if drops_spaces_, drop the following spaces too
    }
    if (p->type == piece_type::unknown) {
      text += unk_surface_;
    } else {
      text += spaced(piece_text);
    }
    if (dropped || !text.empty()) at_start = false;
  }
  append_bytes(bytes, text);
  if (!denormalizer_) return text;
  std::string buffer;
  return std::string(denormalizer_->normalize(text, buffer));
}

}  // namespace millrace::tokenizer::detail
