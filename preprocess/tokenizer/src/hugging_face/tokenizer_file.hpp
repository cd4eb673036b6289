// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/composed_tokenizer.hpp"
#include "core/interfaces.hpp"
#include "hugging_face/hugging_face_tokenizer.hpp"
#include "hugging_face/json_node.hpp"
#include "hugging_face/read_added_tokens.hpp"
#include "hugging_face/read_model.hpp"

namespace millrace::tokenizer::detail {

/// The ids that a post-processor adds before and after the ids of a text.
struct text_template {
  std::vector<std::int32_t> before;
  std::vector<std::int32_t> behind;
  std::vector<offset_trim> trims = {};  ///< the post-processors with `trim_offsets`, in order
  /// Post-processors after this one take its tokens and those of the text for one list.
  bool is_one_list = false;
};

/// Reads the entry "post_processor" for single texts. The supported types are ByteLevel (which
/// affects only offsets), TemplateProcessing, BertProcessing and RobertaProcessing. In a Sequence,
/// at most one post-processor may add special tokens.
///
/// @throws format_error  the post-processor has another type, or the template does not contain the
///                       text exactly once.
text_template read_post_processor(const json_node& processor);

/// A `tokenizer.json` that has been read and checked, but from which no engine has been built yet.
/// Other files of its folder may still change the parts that are accessible here.
class tokenizer_file {
 public:
  /// @param text  must outlive this object
  /// @throws format_error  `text` does not have the expected format.
  explicit tokenizer_file(std::string_view text);

  const model_file& model() const noexcept { return model_; }
  const normalizer* normal() const noexcept { return normal_.get(); }
  const json_node& root() const noexcept { return root_; }

  added_vocabulary& added() noexcept { return added_; }  ///< initially, the file's added tokens
  text_template& around() noexcept { return around_; }   ///< from the post-processor

  /// Adds the tokens of an option as special tokens without other flags.
  /// @throws config_error  a token is empty or cannot get an id
  void add_special_tokens(const std::vector<std::string>& contents);

  /// Creates the parts of a composed_tokenizer, except `eod` and `fingerprint`. Call this only
  /// once.
  /// @throws format_error, config_error  a component is not supported.
  tokenizer_parts make_parts(const hugging_face_options& options);

 private:
  // make_engine(), make_engine_of_raw_text() and make_word_model() may move data out of model_ if
  // no later step uses the data.
  std::unique_ptr<const section_engine> make_engine(std::vector<std::string>& notes);
  std::unique_ptr<const section_engine> make_engine_of_raw_text();
  std::unique_ptr<const word_model> make_word_model();
  std::unique_ptr<const detokenizer> make_detokenizer(std::vector<std::string>& notes) const;
  void check_template() const;
  /// @pre some added tokens are matched in normalized text
  void check_start() const;

  json_document document_;
  json_node root_;
  model_file model_;
  added_vocabulary added_;
  text_template around_;
  std::unique_ptr<const normalizer> normal_;
};

}  // namespace millrace::tokenizer::detail
