// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "composed/added_tokens.hpp"
#include "composed/interfaces.hpp"
#include "hugging_face/json_node.hpp"
#include "hugging_face/read_model.hpp"

namespace millrace::tokenizer::detail {

/// Whether content and flags are the same; ids do not count.
bool same(const added_token& a, const added_token& b);

/// The added tokens of a tokenizer, as Hugging Face's `AddedVocabulary` keeps them: one for each
/// id, and the id of each content.
///
/// Ids are given here as there: that of the model's token with the same content, else the next one
/// that is free behind the model's tokens. What a file says that they are does not count.
class added_vocabulary {
 public:
  /// @param model  outlives this
  explicit added_vocabulary(const model_file& model);

  /// Adds tokens in one step: of one content the last one counts, on its old id. Their `id` is
  /// ignored; contents that are empty are too.
  ///
  /// @return a message if a token cannot be added, else an empty string
  std::string add(const std::vector<added_token>& tokens);

  /// The id of a token, added or of the model, or token_index::none.
  std::int32_t find(std::string_view content) const;

  /// By ascending id, with ids.
  std::vector<added_token> tokens() const;

  /// How a token is written in decoded text: normalized, if it ever was one that is looked for in
  /// normalized text.
  std::string written(const added_token& token, const normalizer* normal) const;

  /// One above the highest id, the model's included.
  std::int64_t end_id() const noexcept { return end_id_; }

 private:
  const model_file* model_;
  std::int64_t model_end_ = 0;
  std::int64_t end_id_ = 0;
  std::vector<bool> taken_;  // ids of the model
  std::unordered_map<std::string, std::int32_t> ids_;
  std::unordered_map<std::int32_t, added_token> tokens_;
  std::unordered_set<std::int32_t> normalized_once_;
};

/// The entry "added_tokens".
/// @throws format_error  with the place of the fault
std::vector<added_token> read_added_tokens(const json_node& list);

/// What looks for the added tokens in texts.
struct added_token_finders {
  added_token_finder raw;
  added_token_finder normalized;
};

/// @param normal  null: none
/// @param stays_text  special tokens in texts are text
/// @throws config_error  two tokens are the same in normalized text, or one is nothing there
added_token_finders make_finders(std::vector<added_token> tokens, const normalizer* normal,
                                 bool stays_text);

}  // namespace millrace::tokenizer::detail
