// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/added_tokens.hpp"
#include "core/interfaces.hpp"
#include "hugging_face/json_node.hpp"
#include "hugging_face/read_model.hpp"

namespace millrace::tokenizer::detail {

/// True if the contents and all flags are equal. Ignores ids.
bool same(const added_token& a, const added_token& b);

/// The added tokens of a tokenizer, as in Hugging Face's `AddedVocabulary`. Stores one token per
/// id, and the id of each content.
///
/// Assigns ids as Hugging Face does. If the model has a token with the same content, the added
/// token gets that token's id. Otherwise, it gets the next free id after the model's tokens.
/// Ignores the ids in the file.
class added_vocabulary {
 public:
  /// @param model  must outlive this object
  explicit added_vocabulary(const model_file& model);

  /// Adds tokens in one step. If several tokens have the same content, the last of them replaces
  /// the others, but gets the id of the first. Ignores the `id` of each given token. Skips tokens
  /// with empty content.
  ///
  /// @return a message if a token cannot be added, otherwise an empty string
  std::string add(const std::vector<added_token>& tokens);

  /// The id of the token `content`, or token_index::none. Finds added tokens and tokens of the
  /// model.
  std::int32_t find(std::string_view content) const;

  /// All added tokens with their ids, by ascending id.
  std::vector<added_token> tokens() const;

  /// The text that decoding gives for a token. If any token that ever had this id is matched in
  /// normalized text, the result is normalized.
  std::string written(const added_token& token, const normalizer* normal) const;

  /// The highest id plus 1, including the model's ids.
  std::int64_t end_id() const noexcept { return end_id_; }

 private:
  const model_file* model_;
  std::int64_t model_end_ = 0;
  std::int64_t end_id_ = 0;
  std::vector<bool> taken_;  // by id: true if the model has the id
  std::unordered_map<std::string, std::int32_t> ids_;
  std::unordered_map<std::int32_t, added_token> tokens_;
  std::unordered_set<std::int32_t> normalized_once_;
};

/// Reads the entry "added_tokens".
/// @throws format_error  the entry is invalid; the offset is that of the invalid part
std::vector<added_token> read_added_tokens(const json_node& list);

/// Finders for the added tokens: one for original text, one for normalized text.
struct added_token_finders {
  added_token_finder raw;
  added_token_finder normalized;
};

/// @param normal  may be null
/// @param stays_text  true if special tokens in texts are encoded as text
/// @throws config_error  after normalization, two tokens are equal or a token is empty
added_token_finders make_finders(std::vector<added_token> tokens, const normalizer* normal,
                                 bool stays_text);

}  // namespace millrace::tokenizer::detail
