// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <boost/program_options.hpp>

#include <millrace/chat/training_text.hpp>
#include <millrace/tokenizer/tokenizer.hpp>

#include "record/conversation_reader.hpp"
#include "run/run_options.hpp"

namespace millrace::preprocess {

/// `--messages-key` and the flags that belong to it.
struct conversation_flags {
  std::string chat_template = "tokenizer";  ///< `--chat-template`
  /// `--sft-tokenizer-prompt-format`, which replaces the template and what is trained.
  std::optional<std::string> prompt_format = std::nullopt;
  std::optional<std::string> date = std::nullopt;          ///< `--template-date`, YYYY-MM-DD
  chat::training_options training = {};                    ///< without special tokens
  std::optional<std::int64_t> most_tokens = std::nullopt;  ///< `--max-length`
  overlong_policy overlong = overlong_policy::error;       ///< `--overlong`
};

/// The flags for `--help chat`.
///
/// @param with_preview  also `--preview`, which one process takes
boost::program_options::options_description conversation_group(bool with_preview);

/// Returns the flags that were given; nothing without `--messages-key`.
///
/// @throws command::usage_error  a flag is invalid, or was given without `--messages-key`.
std::optional<conversation_flags> conversation_flags_of(
    const boost::program_options::variables_map& given);

/// Sets the options without which a tokenizer would not see a conversation as `transformers` does:
/// nothing around the text, and special tokens as their ids.
///
/// @throws command::usage_error  other options contradict this, or the tokenizer has no folder.
void prepare_tokenizer(tokenizer::tokenizer_options& options);

/// Reads the templates, and the names of the tokenizer's tokens.
///
/// If a template asks for the date, and no flag gives it, the date is that of the run that is to be
/// resumed, or else today's.
///
/// @param may_ask_clock  false: a date must be given, because several processes need the same one
/// @throws config_error          there is no such template, or a date is missing.
/// @throws chat::template_error  a template is not supported.
/// @throws io_error, format_error  a file cannot be read.
std::shared_ptr<const conversation_options> open_conversations(
    const conversation_flags& flags, const tokenizer::tokenizer_options& tokenizer,
    const run_options& run, bool may_ask_clock);

}  // namespace millrace::preprocess
