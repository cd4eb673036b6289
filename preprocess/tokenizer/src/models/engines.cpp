// SPDX-License-Identifier: Apache-2.0
#include "models/engines.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/formats/detail/free_memory.hpp>

#include "bpe/cached_word_encoder.hpp"
#include "bpe/shared_pretoken_cache.hpp"
#include "models/word_cache.hpp"
#include "unicode/unicode_classes.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

/// Maps each plain ASCII character to its normalized character, and all other characters to 0. A
/// plain character stays one character and does not end a word. A unit of only plain characters is
/// one word, and needs neither the normalizer nor the pre-tokenizer.
class plain_characters {
 public:
  explicit plain_characters(const unit_parts& parts) {
    std::string buffer;
    piece_list pieces;
    for (unsigned c = 1; c < to_.size(); ++c) {
      const auto character = static_cast<char>(c);
      // Test each character between two letters. If it is dropped, changes its size or splits the
      // word, it is not plain.
      const std::array<char, 3> text = {'a', character, 'a'};
      std::string_view normal(text.data(), text.size());
      if (parts.normal) normal = parts.normal->normalize(normal, buffer);
      parts.words->split({normal, true}, pieces);
      if (pieces.ends.size() == 1 && pieces.text.size() == text.size()) to_[c] = pieces.text[1];
    }
  }

  /// Writes the normalized characters of `unit` to `word`. Returns false if `unit` has a character
  /// that is not plain; then the content of `word` is unspecified.
  bool apply(std::string_view unit, char* word) const noexcept {
    bool all = true;
    for (std::size_t i = 0; i < unit.size(); ++i) {
      const auto byte = static_cast<unsigned char>(unit[i]);
      word[i] = to_[byte & 0x7F];
      all &= byte < 0x80 && word[i] != 0;
    }
    return all;
  }

 private:
  std::array<char, 128> to_{};
};

// Encodes the words of a section. The spans count in the section.
std::optional<encode_fault> encode_aligned_pieces(const aligned_pieces& pieces, word_encoder& model,
                                                  id_buffer& ids, std::vector<byte_span>& spans) {
  std::size_t begin = 0;
  for (const std::size_t end : pieces.ends) {
    const std::size_t before = spans.size();
    const std::string_view word = pieces.all.text().substr(begin, end - begin);
    if (auto fault = model.encode_with_offsets(word, ids, spans)) {
      fault->offset_bytes = 0;
      return fault;
    }
    for (byte_span& span : std::span(spans).subspan(before)) {
      if (span.begin == span.end) return encode_fault{0, "a token has no text"};
      span = pieces.all.origin(begin + span.begin, begin + span.end);
    }
    begin = end;
  }
  return std::nullopt;
}

class unit_encoder final : public section_encoder {
 public:
  unit_encoder(const unit_parts& parts, const plain_characters& plain, std::size_t cache_bytes,
               shared_pretoken_cache& shared, instruction_set set)
      : parts_(&parts),
        plain_(&plain),
        model_(parts.model->make_encoder()),
        known_(cache_bytes, shared, set, leading_space::is_none) {}

  std::optional<encode_fault> encode(const section& part, id_buffer& ids) override {
    auto fault = known_.encode(
        part.text, *parts_->units, ids,
        [this](std::string_view unit, id_buffer& out) { return encode_new(unit, out); });
    if (pieces_.text.capacity() > kept_bytes) {
      formats::free_memory(pieces_.text);
      formats::free_memory(pieces_.ends);
    }
    if (normal_.capacity() > kept_bytes) formats::free_memory(normal_);
    return fault;
  }

  std::optional<encode_fault> encode_with_offsets(const section& part, id_buffer& ids,
                                                  std::vector<byte_span>& spans) override {
    std::array<std::size_t, 4 * word_splitter::room_for_window> ends;
    std::size_t begin = 0;
    while (begin < part.text.size()) {
      const std::size_t count = parts_->units->next_ends(part.text, begin, ends);
      for (const std::size_t end : std::span(ends).first(count)) {
        const std::size_t before = spans.size();
        const std::string_view unit = part.text.substr(begin, end - begin);
        if (auto fault = encode_unit_with_offsets(unit, ids, spans)) return fault;
        for (byte_span& span : std::span(spans).subspan(before)) {
          span = {begin + span.begin, begin + span.end};
        }
        begin = end;
      }
    }
    return std::nullopt;
  }

 private:
  // If a huge unit needs more scratch memory than this, the memory is freed after the unit.
  // Ordinary units need less.
  static constexpr std::size_t kept_bytes = std::size_t{1} << 16;

  std::optional<encode_fault> encode_new(std::string_view unit, id_buffer& ids) {
    std::array<char, 64> word;
    if (unit.size() <= word.size() && plain_->apply(unit, word.data())) {
      return encode_word({word.data(), unit.size()}, ids);
    }
    const std::string_view normal =
        parts_->normal ? parts_->normal->normalize(unit, normal_) : unit;
    parts_->words->split({normal, false}, pieces_);
    const std::string_view text = pieces_.text;
    std::size_t begin = 0;
    for (const std::size_t end : pieces_.ends) {
      if (auto fault = encode_word(text.substr(begin, end - begin), ids)) return fault;
      begin = end;
    }
    return std::nullopt;
  }

  std::optional<encode_fault> encode_unit_with_offsets(std::string_view unit, id_buffer& ids,
                                                       std::vector<byte_span>& spans) {
    std::array<char, 64> word;
    if (unit.size() <= word.size() && plain_->apply(unit, word.data())) {
      return model_->encode_with_offsets({word.data(), unit.size()}, ids, spans);
    }
    aligned_text normal(unit);
    if (parts_->normal) parts_->normal->align(normal);
    parts_->words->split_aligned({normal.text(), false}, aligned_);
    const std::size_t before = spans.size();
    if (auto fault = encode_aligned_pieces(aligned_, *model_, ids, spans)) return fault;
    // Twice, because the pieces were made from normalized text, and that from the unit.
    for (byte_span& span : std::span(spans).subspan(before)) {
      span = normal.origin(span.begin, span.end);
    }
    return std::nullopt;
  }

  // Reports faults with offset 0, because the offset of a word is not known after normalization.
  std::optional<encode_fault> encode_word(std::string_view word, id_buffer& ids) {
    auto fault = model_->encode(word, ids);
    if (fault) fault->offset_bytes = 0;
    return fault;
  }

  const unit_parts* parts_;
  const plain_characters* plain_;
  std::unique_ptr<word_encoder> model_;
  std::string normal_;
  piece_list pieces_;
  aligned_pieces aligned_;
  cached_word_encoder known_;
};

class unit_engine final : public section_engine {
 public:
  unit_engine(unit_parts parts, engine_tuning tuning)
      : parts_(std::move(parts)), plain_(parts_), set_(tuning.set), shared_(tuning.shared_bytes) {}

  std::unique_ptr<section_encoder> make_encoder(std::size_t cache_bytes) const override {
    return std::make_unique<unit_encoder>(parts_, plain_, cache_bytes, shared_.get(cache_bytes),
                                          set_);
  }

  // Whether a unit ends at a place depends only on the two characters next to that place, except in
  // runs of white space.
  bool may_cut(std::string_view text, std::size_t at) const override {
    const std::size_t left = character_before(text, at);
    constexpr unsigned plain = char_flags::letter | char_flags::number | char_flags::punctuation;
    if ((flags_of(code_point_at(text, left).value) & plain) == 0) return false;
    const std::size_t end = at + code_point_at(text, at).size_bytes;
    std::size_t first_end = 0;
    parts_.units->next_ends(text.substr(left, end - left), 0, std::span(&first_end, 1));
    return first_end == at - left;
  }

 private:
  unit_parts parts_;
  plain_characters plain_;
  instruction_set set_;
  shared_pretoken_cache_on_demand shared_;
};

}  // namespace

std::unique_ptr<const section_engine> make_unit_engine(unit_parts parts, engine_tuning tuning) {
  return std::make_unique<unit_engine>(std::move(parts), tuning);
}

namespace {

class piecewise_encoder final : public section_encoder {
 public:
  piecewise_encoder(const pre_tokenizer* words, const word_model& model, std::size_t cache_bytes)
      : words_(words), model_(model.make_encoder()), cache_(cache_bytes) {}

  std::optional<encode_fault> encode(const section& part, id_buffer& ids) override {
    if (words_ == nullptr) return encode_word(part.text, ids);
    words_->split(part, pieces_);
    const std::string_view text = pieces_.text;
    std::size_t begin = 0;
    for (const std::size_t end : pieces_.ends) {
      if (auto fault = encode_word(text.substr(begin, end - begin), ids)) {
        // The place of the word in the text is not known, because the pre-tokenizer may have
        // changed the text.
        fault->offset_bytes = 0;
        return fault;
      }
      begin = end;
    }
    if (pieces_.text.capacity() > kept_bytes) {
      formats::free_memory(pieces_.text);
      formats::free_memory(pieces_.ends);
    }
    return std::nullopt;
  }

  std::optional<encode_fault> encode_with_offsets(const section& part, id_buffer& ids,
                                                  std::vector<byte_span>& spans) override {
    if (words_ != nullptr) {
      aligned_pieces pieces;
      words_->split_aligned(part, pieces);
      return encode_aligned_pieces(pieces, *model_, ids, spans);
    }
    if (part.text.empty()) return std::nullopt;
    const std::size_t before = spans.size();
    if (auto fault = model_->encode_with_offsets(part.text, ids, spans)) return fault;
    for (byte_span& span : std::span(spans).subspan(before)) {
      span = whole_characters(part.text, span);
    }
    return std::nullopt;
  }

 private:
  // If a huge text needs more scratch memory than this, encode() frees the memory afterwards.
  // Ordinary texts need less.
  static constexpr std::size_t kept_bytes = std::size_t{1} << 22;

  std::optional<encode_fault> encode_word(std::string_view word, id_buffer& ids) {
    if (word.empty()) return std::nullopt;
    if (word.size() > word_cache::max_word_bytes) return model_->encode(word, ids);
    if (const auto known = cache_.find(word)) {
      ids.append(*known);
      return std::nullopt;
    }
    const std::size_t before = ids.size();
    if (auto fault = model_->encode(word, ids)) return fault;
    cache_.put(word, ids.ids().subspan(before));
    return std::nullopt;
  }

  const pre_tokenizer* words_;
  std::unique_ptr<word_encoder> model_;
  word_cache cache_;
  piece_list pieces_;
};

class piecewise_engine final : public section_engine {
 public:
  piecewise_engine(std::unique_ptr<const pre_tokenizer> words,
                   std::unique_ptr<const word_model> model)
      : words_(std::move(words)), model_(std::move(model)) {}

  std::unique_ptr<section_encoder> make_encoder(std::size_t cache_bytes) const override {
    return std::make_unique<piecewise_encoder>(words_.get(), *model_, cache_bytes);
  }

 private:
  std::unique_ptr<const pre_tokenizer> words_;
  std::unique_ptr<const word_model> model_;
};

}  // namespace

std::unique_ptr<const section_engine> make_piecewise_engine(
    std::unique_ptr<const pre_tokenizer> words, std::unique_ptr<const word_model> model) {
  return std::make_unique<piecewise_engine>(std::move(words), std::move(model));
}

}  // namespace millrace::tokenizer::detail
