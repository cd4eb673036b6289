// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/model_file.hpp"

#include <algorithm>
#include <cmath>

#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>
#include <millrace/formats/detail/utf8.hpp>

#include "sentencepiece/wire_reader.hpp"
#include "text/token_index.hpp"

namespace millrace::tokenizer::detail {
namespace {

constexpr std::size_t max_piece_bytes = 7999;
constexpr std::string_view null_piece("\0", 1);

// Fields of a model that are needed only to check it.
struct names {
  std::string unk = "<unk>";
  std::string eos = "</s>";
};

void read_flag(const wire_reader& field, bool& flag) {
  if (field.is_number()) flag = field.value() != 0;
}

void read_text(const wire_reader& field, std::string& text) {
  if (field.is_bytes()) text = field.content();
}

void read_normalizer(wire_reader reader, normalizer_spec& spec) {
  while (reader.next()) {
    switch (reader.number()) {
      case 2:
        read_text(reader, spec.charsmap);
        if (reader.is_bytes()) {
          spec.charsmap_offset = reader.message().offset();
        }
        break;
      case 3:
        read_flag(reader, spec.add_dummy_prefix);
        break;
      case 4:
        read_flag(reader, spec.remove_extra_whitespaces);
        break;
      case 5:
        read_flag(reader, spec.escape_whitespaces);
        break;
      default:
        break;
    }
  }
}

void read_trainer(wire_reader reader, sentencepiece_model& model, names& special) {
  while (reader.next()) {
    switch (reader.number()) {
      case 3:
        if (!reader.is_number()) break;
        if (reader.value() < 1 || reader.value() > 4) {
          throw format_error(reader.offset(), "model type " + std::to_string(reader.value()) +
                                                  ", expected 1 (unigram) to 4 (char)");
        }
        model.type = static_cast<model_type>(reader.value());
        break;
      case 24:
        read_flag(reader, model.whitespace_as_suffix);
        break;
      case 35:
        read_flag(reader, model.byte_fallback);
        break;
      case 44:
        read_text(reader, model.unk_surface);
        break;
      case 45:
        read_text(reader, special.unk);
        break;
      case 47:
        read_text(reader, special.eos);
        break;
      default:
        break;
    }
  }
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = formats::utf8_sequence_bytes(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

sentencepiece_model::piece read_piece(wire_reader reader) {
  sentencepiece_model::piece piece;
  const std::uint64_t offset = reader.offset();
  while (reader.next()) {
    if (reader.number() == 1 && reader.is_bytes()) piece.text = reader.content();
    if (reader.number() == 2 && reader.is_float()) piece.score = reader.as_float();
    if (reader.number() == 3 && reader.is_number()) {
      if (reader.value() < 1 || reader.value() > 6) {
        throw format_error(reader.offset(), "piece type " + std::to_string(reader.value()) +
                                                ", expected 1 (normal) to 6 (byte)");
      }
      piece.type = static_cast<piece_type>(reader.value());
    }
  }
  if (piece.text.empty()) throw format_error(offset, "an empty piece");
  if (piece.text.size() > max_piece_bytes) {
    throw format_error(offset, "a piece of " + std::to_string(piece.text.size()) +
                                   " bytes, expected at most " + std::to_string(max_piece_bytes));
  }
  if (!is_utf8(piece.text)) {
    throw format_error(offset, "the piece " + formats::in_quotes(piece.text) + " is not UTF-8");
  }
  if (!std::isfinite(piece.score)) {
    throw format_error(
        offset, "the score of piece " + formats::in_quotes(piece.text) + " is not a finite number");
  }
  return piece;
}

// The byte that a piece such as <0x0A> represents, or -1.
int byte_of(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  int value = 0;
  for (const char c : text.substr(3, 2)) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && (c < 'A' || c > 'F')) return -1;
    value = value * 16 + (digit ? c - '0' : c - 'A' + 10);
  }
  return value;
}

// Checks that the pieces are consistent with each other, and finds the special pieces.
class piece_checker {
 public:
  piece_checker(sentencepiece_model& model, std::uint64_t file_size)
      : model_(model), end_(file_size) {
    model.byte_ids.fill(-1);
    const auto texts = static_cast<std::size_t>(std::ranges::count_if(
        model.pieces, [this](const auto& piece) { return has_text_id(piece.type); }));
    ids_ = token_index(model.pieces.size() - texts);
    text_ids_ = token_index(texts);
  }

  void check(std::int32_t id, sentencepiece_model::piece& piece, std::uint64_t offset) {
    if (piece.text == null_piece && model_.byte_fallback) piece.type = piece_type::unused;
    if (piece.text == null_piece && piece.type == piece_type::unused) return;
    if (piece.text.find('\0') != std::string_view::npos) {
      throw format_error(offset,
                         "the piece " + formats::in_quotes(piece.text) + " has a zero byte");
    }
    token_index& ids = has_text_id(piece.type) ? text_ids_ : ids_;
    if (!ids.add(piece.text, id)) {
      throw format_error(offset, "the piece " + formats::in_quotes(piece.text) + " occurs twice");
    }
    if (piece.type == piece_type::unknown) {
      if (model_.unk_id >= 0)
        throw format_error(offset, "a second piece has type unknown, expected one");
      model_.unk_id = id;
    }
    if (piece.type == piece_type::byte) add_byte(id, piece.text, offset);
  }

  void finish(const names& special) {
    if (model_.unk_id < 0 && !model_.byte_fallback) {
      throw format_error(end_, "the model has no unknown piece");
    }
    for (int byte = 0; model_.byte_fallback && byte < 256; ++byte) {
      if (model_.byte_ids[static_cast<std::size_t>(byte)] < 0) {
        throw format_error(
            end_, "the model has byte fallback, but no piece for byte " + std::to_string(byte));
      }
    }
    const auto eos = ids_.find(special.eos.empty() ? "</s>" : std::string_view(special.eos));
    if (eos != token_index::none &&
        model_.pieces[static_cast<std::size_t>(eos)].type == piece_type::control) {
      model_.eos_id = eos;
    }
  }

 private:
  // In a BPE model, the texts of all pieces must be distinct. In other models, a piece that text
  // can match may have the same text as a piece that text cannot match.
  bool has_text_id(piece_type type) const {
    const bool reserved =
        type == piece_type::unknown || type == piece_type::control || type == piece_type::byte;
    return !reserved && model_.type != model_type::bpe;
  }

  void add_byte(std::int32_t id, std::string_view text, std::uint64_t offset) {
    if (!model_.byte_fallback) {
      throw format_error(offset, "the model has the byte piece " + formats::in_quotes(text) +
                                     ", but no byte fallback");
    }
    const int byte = byte_of(text);
    if (byte < 0) {
      throw format_error(
          offset, "the byte piece " + formats::in_quotes(text) + ", expected <0x00> to <0xFF>");
    }
    model_.byte_ids[static_cast<std::size_t>(byte)] = id;
  }

  sentencepiece_model& model_;
  std::uint64_t end_;
  token_index ids_;
  token_index text_ids_;
};

}  // namespace

sentencepiece_model parse_sentencepiece_model(std::string_view file) {
  sentencepiece_model model;
  names special;
  normalizer_spec denormalizer;
  std::vector<std::uint64_t> offsets;
  wire_reader reader(file);
  while (reader.next()) {
    if (!reader.is_bytes()) continue;
    switch (reader.number()) {
      case 1:
        if (model.pieces.size() == 0x7FFFFFFF) {
          throw format_error(reader.offset(), "more than 2147483647 pieces");
        }
        model.pieces.push_back(read_piece(reader.message()));
        offsets.push_back(reader.offset());
        break;
      case 2:
        read_trainer(reader.message(), model, special);
        break;
      case 3:
        read_normalizer(reader.message(), model.normalizer);
        break;
      case 5:
        read_normalizer(reader.message(), denormalizer);
        break;
      default:
        break;
    }
  }
  if (model.pieces.empty())
    throw format_error(file.size(), "the model has no pieces, expected one or more");
  piece_checker checker(model, file.size());
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    checker.check(static_cast<std::int32_t>(id), model.pieces[id], offsets[id]);
  }
  checker.finish(special);
  if (!denormalizer.charsmap.empty()) model.denormalizer = std::move(denormalizer);
  return model;
}

}  // namespace millrace::tokenizer::detail
