// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "bpe/merge_table.hpp"
#include "hugging_face/json_node.hpp"
#include "models/unigram.hpp"
#include "models/vocabulary.hpp"
#include "text/token_index.hpp"

namespace millrace::tokenizer::detail {

enum class model_kind : std::uint8_t { bpe, word_piece, word_level, unigram };

/// The entry "model" of a `tokenizer.json`, read and checked. Texts are views of the JSON document.
struct model_file {
  model_kind kind = model_kind::bpe;
  std::vector<listed_token> tokens;  ///< in file order; ids are distinct
  token_index index;                 ///< ids of the tokens, by text

  std::string_view prefix;                  ///< "continuing_subword_prefix"
  std::optional<std::string_view> unknown;  ///< "unk_token"
  std::optional<std::int32_t> unknown_id;   ///< id of `unknown`; Unigram: "unk_id"
  std::string_view suffix;                  ///< BPE: "end_of_word_suffix"
  std::vector<merge_rule> merges;           ///< BPE, in order of rank
  bool fuse_unknown = false;                ///< BPE: "fuse_unk"
  bool byte_fallback = false;               ///< BPE and Unigram: "byte_fallback"
  bool whole_words_first = false;           ///< BPE: "ignore_merges"
  std::size_t max_characters_per_word = 0;  ///< WordPiece: "max_input_chars_per_word"
  std::vector<unigram_piece> pieces;        ///< Unigram: "vocab"
};

/// Highest id that a file may give a token. Real ids are far lower. The sizes of tables grow with
/// the highest id.
inline constexpr std::int64_t max_token_id = (std::int64_t{1} << 22) - 1;

/// Reads the model as Hugging Face's tokenizers do, including files without "type".
///
/// Refuses every model that Hugging Face refuses. Also refuses a "dropout" that is not 0, a merge
/// whose right part is not longer than the prefix, and a duplicate token or id (of which Hugging
/// Face keeps the later text).
///
/// @param model  must outlive the result
/// @throws format_error  the model is refused; the offset is that of the invalid part
model_file read_model(const json_node& model);

}  // namespace millrace::tokenizer::detail
