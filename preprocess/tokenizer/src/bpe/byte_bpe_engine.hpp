// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bpe/byte_merges.hpp"
#include "bpe/merge_table.hpp"
#include "bpe/token_table.hpp"
#include "core/interfaces.hpp"
#include "split/splitters.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {

/// A byte-level vocabulary that has been read from files and checked.
struct byte_bpe_vocabulary {
  /// The tokens that text can produce, with their bytes. Special tokens are not included.
  token_table tokens;
  /// The token of each byte, or -1 if the byte produces no token.
  std::array<std::int32_t, 256> byte_ids{};
  /// The merges, in order of rank.
  std::vector<merge_rule> merges;
  /// If true, a pretoken whose bytes are a token becomes that token, even if its merges would
  /// produce other ids (tokenizer.json's `ignore_merges`; tiktoken always does this).
  bool whole_words_first = false;
};

/// Creates an engine for byte-level BPE. It splits text into pretokens and merges each separately.
/// @pre the pattern is not one of the BERT patterns
std::unique_ptr<const section_engine> make_byte_bpe_engine(byte_bpe_vocabulary vocabulary,
                                                           pattern pretokens,
                                                           engine_tuning tuning = {});

/// Creates an engine from the tables that another engine of this kind has written.
/// @param in  its memory must outlive the engine
/// @throws format_error  the bytes are not such tables
std::unique_ptr<const section_engine> read_byte_bpe_engine(table_reader& in,
                                                           engine_tuning tuning = {});

/// Concatenates the bytes of the tokens.
class byte_detokenizer final : public detokenizer {
 public:
  explicit byte_detokenizer(token_table tokens) : tokens_(std::move(tokens)) {}

  std::string decode(std::span<const std::int64_t> ids) const override {
    std::string text;
    for (const std::int64_t id : ids) {
      text += tokens_.has(id) ? tokens_.bytes(id) : replacement_character;
    }
    return text;
  }
  std::optional<formats::token_texts> texts() const override {
    formats::token_texts all;
    for (std::int64_t id = 0; id < tokens_.end_id(); ++id) {
      all.add(tokens_.has(id) ? tokens_.bytes(id) : replacement_character);
    }
    all.end(replacement_character);
    return all;
  }
  const token_table* tokens() const noexcept override { return &tokens_; }

 private:
  token_table tokens_;
};

}  // namespace millrace::tokenizer::detail
