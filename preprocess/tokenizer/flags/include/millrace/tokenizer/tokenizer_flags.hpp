// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include <millrace/command/run_command.hpp>
#include <millrace/tokenizer/tokenizer.hpp>

/// Megatron's tokenizer flags, for every program that takes them. This header is private and is not
/// installed, so the installed library does not need Boost.
namespace millrace::tokenizer {

/// The tokenizer types and the files that they read, for messages.
inline constexpr const char* types_and_files =
    "GPT2BPETokenizer (vocab.json and merges.txt), HuggingFaceTokenizer (tokenizer.json or its "
    "folder), SentencePieceTokenizer or Llama2Tokenizer (a SentencePiece .model), "
    "BertWordPieceLowerCase or BertWordPieceCase (vocab.txt), TikTokenizer (.tiktoken or "
    "Megatron's .vocab.json), NullTokenizer (texts that are ids already) or ByteLevelTokenizer "
    "(ids are bytes, no file)";

inline boost::program_options::options_description tokenizer_flags() {
  namespace po = boost::program_options;
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  const auto number = [] { return po::value<std::int64_t>()->value_name("N"); };
  po::options_description group("Tokenizer");
  auto add = group.add_options();
  add("tokenizer-type", text("TYPE"),
      "tokenizer, by its Megatron name: GPT2BPETokenizer (--vocab-file, --merge-file), "
      "HuggingFaceTokenizer "
      "(--tokenizer-model: tokenizer.json or its folder), SentencePieceTokenizer, "
      "GPTSentencePieceTokenizer, Llama2Tokenizer (--tokenizer-model), "
      "BertWordPieceLowerCase, BertWordPieceCase (--vocab-file: vocab.txt), TikTokenizer "
      "(--tokenizer-model: .tiktoken with --tiktoken-pattern, or .vocab.json), NullTokenizer "
      "(--vocab-size), ByteLevelTokenizer");
  add("tokenizer-model", text("PATH"), "path, for types that read one file or one folder");
  add("vocab-file", text("FILE"), "vocab.json or vocab.txt");
  add("merge-file", text("FILE"), "merges.txt");
  add("vocab-size", number(), "vocabulary size, for types whose files do not define it");
  add("tokenizer-special-tokens",
      po::value<std::vector<std::string>>()->multitoken()->value_name("TOKEN ..."),
      "special tokens in addition to those of the files (TikTokenizer: instead of its own); not "
      "for a SentencePiece model or BertWordPieceCase, where Megatron does not use them");
  add("special-tokens-in-text", text("allow|encode-as-text|error"),
      "special tokens spelled out in a text: allow encodes them as their ids, encode-as-text "
      "treats them as any other text, error makes the record bad (default: what Megatron does for "
      "the type; encode-as-text for a .tiktoken file)");
  add("eod-token", text("TOKEN"),
      "end-of-document token, by its text or, in a SentencePiece model, its name (default: the one "
      "that the files name)");
  add("tiktoken-pattern", text("NAME"),
      "v1 or v2 (default) for a .vocab.json; for a .tiktoken file, the name of its vocabulary, "
      "e.g. cl100k");
  add("tiktoken-num-special-tokens", number(),
      "number of ids before the first rank (default: 1000)");
  add("tokenizer-cache", text("DIR"),
      "keep the tables of byte-level BPE in DIR, so that later runs load the tokenizer faster; "
      "affects speed only (default: no cache)");
  add("tokenizer-sentencepiece-legacy", "not supported: would split texts at special tokens first");
  add("no-tokenizer-sentencepiece-ignore-extra-whitespaces", "keep runs of spaces");
  add("tokenizer-hf-no-include-special-tokens", "omit the tokens that a template adds");
  add("null-tokenizer-eod-id", number(), "end-of-document id (default: vocab-size - 1)");
  add("null-tokenizer-pad-id", number(), "accepted but unused: millrace pads nothing");
  add("vocab-extra-ids", number(),
      "not supported, and without effect in Megatron: use --tokenizer-special-tokens");
  add("tokenizer-hf-no-use-fast",
      "not supported for tokenizers of transformers, and without effect for others");
  add("trust-remote-code",
      "not supported for tokenizers of transformers, and without effect for others: code from a "
      "tokenizer's folder is never run");
  return group;
}

/// Parses the value of `--special-tokens-in-text`.
/// @throws usage_error  `word` is none of the three values.
inline special_tokens_in_text special_tokens_policy(const std::string& word) {
  if (word == "allow") return special_tokens_in_text::allow;
  if (word == "encode-as-text") return special_tokens_in_text::encode_as_text;
  if (word == "error") return special_tokens_in_text::error;
  throw command::usage_error("--special-tokens-in-text " + word +
                             ": expected allow, encode-as-text or error");
}

/// Returns the options that the flags set, or std::nullopt if no tokenizer flag is given. Two flags
/// for transformers' tokenizers have no effect if the type is another one.
///
/// @throws usage_error  a flag is given without --tokenizer-type, or a flag asks for something
///                      that is not supported.
inline std::optional<tokenizer_options> tokenizer_options_of(
    const boost::program_options::variables_map& given) {
  tokenizer_options options;
  const char* other = nullptr;  // a given flag other than --tokenizer-type
  const auto take = [&]<class T, class To>(const char* flag, T, To& to) {
    const auto& value = given[flag];
    if (value.empty()) return false;
    to = value.as<T>();
    other = flag;
    return true;
  };
  const auto take_switch = [&](const char* flag, bool& to, bool value) {
    if (given.count(flag) == 0) return;
    to = value;
    other = flag;
  };
  const bool typed = take("tokenizer-type", std::string(), options.type);
  const bool of_transformers =
      !typed || options.type == "HuggingFaceTokenizer" || options.type == "GPT2BPETokenizer" ||
      options.type == "BertWordPieceLowerCase" || options.type == "BertWordPieceCase";
  if (given.count("tokenizer-hf-no-use-fast") != 0 && of_transformers) {
    throw command::usage_error(
        "--tokenizer-hf-no-use-fast: slow tokenizers are Python code; only fast tokenizers, which "
        "a tokenizer.json describes, are supported");
  }
  if (given.count("trust-remote-code") != 0 && of_transformers) {
    throw command::usage_error(
        "--trust-remote-code: tokenizers that need their own code are not supported, and such code "
        "is never run; if the model needs none, omit the flag");
  }
  other = nullptr;
  take("tokenizer-model", std::string(), options.model);
  take("vocab-file", std::string(), options.vocab_file);
  take("merge-file", std::string(), options.merge_file);
  take("vocab-size", std::int64_t(), options.vocab_size);
  take("vocab-extra-ids", std::int64_t(), options.vocab_extra_ids);
  take("tokenizer-special-tokens", std::vector<std::string>(), options.special_tokens);
  take("eod-token", std::string(), options.eod_token);
  take("tiktoken-pattern", std::string(), options.tiktoken_pattern);
  take("tiktoken-num-special-tokens", std::int64_t(), options.tiktoken_num_special_tokens);
  take("null-tokenizer-eod-id", std::int64_t(), options.null_eod_id);
  take("null-tokenizer-pad-id", std::int64_t(), options.null_pad_id);
  take("tokenizer-cache", std::string(), options.cache);
  take_switch("tokenizer-sentencepiece-legacy", options.sentencepiece_legacy, true);
  take_switch("no-tokenizer-sentencepiece-ignore-extra-whitespaces",
              options.sentencepiece_ignore_extra_whitespaces, false);
  take_switch("tokenizer-hf-no-include-special-tokens", options.hf_include_special_tokens, false);
  std::string policy;
  if (take("special-tokens-in-text", std::string(), policy)) {
    options.in_text = special_tokens_policy(policy);
  }
  if (typed) return options;
  if (other == nullptr) return std::nullopt;
  throw command::usage_error(std::string("--") + other +
                             " requires --tokenizer-type: " + types_and_files);
}

/// Returns the flags that give these options, as words of a command line, for a `.meta` file.
/// Without `--tokenizer-type`, `--tokenizer-cache` and flags that change nothing. Empty if the
/// tokenizer reads no files.
inline std::vector<std::string> flags_for_files(const tokenizer_options& options) {
  std::vector<std::string> words;
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) words.push_back(std::string("--") + flag + '=' + value);
  };
  const auto add_number = [&](const char* flag, const std::optional<std::int64_t>& value) {
    if (value) add(flag, std::to_string(*value));
  };
  add("tokenizer-model", options.model.string());
  add("vocab-file", options.vocab_file.string());
  add("merge-file", options.merge_file.string());
  if (words.empty()) return words;
  add_number("vocab-size", options.vocab_size);
  add_number("vocab-extra-ids", options.vocab_extra_ids);
  add("eod-token", options.eod_token);
  add("tiktoken-pattern", options.tiktoken_pattern);
  add_number("tiktoken-num-special-tokens", options.tiktoken_num_special_tokens);
  if (options.sentencepiece_legacy) words.emplace_back("--tokenizer-sentencepiece-legacy");
  if (!options.sentencepiece_ignore_extra_whitespaces) {
    words.emplace_back("--no-tokenizer-sentencepiece-ignore-extra-whitespaces");
  }
  if (!options.hf_include_special_tokens) {
    words.emplace_back("--tokenizer-hf-no-include-special-tokens");
  }
  switch (options.in_text) {
    case special_tokens_in_text::as_reference:
      break;
    case special_tokens_in_text::allow:
      add("special-tokens-in-text", "allow");
      break;
    case special_tokens_in_text::encode_as_text:
      add("special-tokens-in-text", "encode-as-text");
      break;
    case special_tokens_in_text::error:
      add("special-tokens-in-text", "error");
      break;
  }
  if (!options.special_tokens.empty()) {
    words.emplace_back("--tokenizer-special-tokens");
    words.insert(words.end(), options.special_tokens.begin(), options.special_tokens.end());
  }
  return words;
}

/// Calls make_tokenizer() for a program. Rethrows a config_error, which reports wrong flags, as a
/// usage_error.
///
/// @throws usage_error              the type does not take a flag, or a required flag is missing.
/// @throws io_error, format_error   as make_tokenizer
inline std::unique_ptr<tokenizer> open_tokenizer(const tokenizer_options& options) {
  try {
    return make_tokenizer(options);
  } catch (const config_error& e) {
    throw command::usage_error(e.what());
  }
}

}  // namespace millrace::tokenizer
