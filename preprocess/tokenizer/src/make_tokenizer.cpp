// SPDX-License-Identifier: Apache-2.0
#include <millrace/tokenizer/tokenizer.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/io/file_ops.hpp>

#include "cache/tokenizer_cache.hpp"
#include "core/composed_tokenizer.hpp"
#include "file_advice.hpp"
#include "gpt2/gpt2_tokenizer.hpp"
#include "hugging_face/hugging_face_tokenizer.hpp"
#include "regex/pcre2_pattern.hpp"
#include "sentencepiece/sentencepiece_tokenizer.hpp"
#include "simple/simple_tokenizers.hpp"
#include "split/instruction_set.hpp"
#include "tiktoken/tiktoken_tokenizer.hpp"

namespace millrace::tokenizer {
namespace {

/// A set of options, one bit each.
using option_set = std::uint32_t;
enum : option_set {
  model = 1U << 0,
  vocab_file = 1U << 1,
  merge_file = 1U << 2,
  vocab_size = 1U << 3,
  special_tokens = 1U << 4,
  in_text = 1U << 5,
  eod_token = 1U << 6,
  tiktoken_pattern = 1U << 7,
  tiktoken_num_special_tokens = 1U << 8,
  sentencepiece_flags = 1U << 9,
  hf_flags = 1U << 10,
  null_flags = 1U << 11,
};

// A flag, and a function that takes it out of the options and returns whether it was given.
struct known_option {
  option_set option;
  std::string_view flag;
  bool (*take)(tokenizer_options&);

  bool given(tokenizer_options options) const { return take(options); }
};

// Takes a member out of the options. A member without its default value was given.
template <auto Member>
bool take(tokenizer_options& options) {
  const tokenizer_options unset;
  return std::exchange(options.*Member, unset.*Member) != unset.*Member;
}

constexpr std::array known_options = {
    known_option{model, "--tokenizer-model", take<&tokenizer_options::model>},
    known_option{vocab_file, "--vocab-file", take<&tokenizer_options::vocab_file>},
    known_option{merge_file, "--merge-file", take<&tokenizer_options::merge_file>},
    known_option{vocab_size, "--vocab-size", take<&tokenizer_options::vocab_size>},
    known_option{special_tokens, "--tokenizer-special-tokens",
                 take<&tokenizer_options::special_tokens>},
    known_option{in_text, "--special-tokens-in-text", take<&tokenizer_options::in_text>},
    known_option{eod_token, "--eod-token", take<&tokenizer_options::eod_token>},
    known_option{tiktoken_pattern, "--tiktoken-pattern",
                 take<&tokenizer_options::tiktoken_pattern>},
    known_option{tiktoken_num_special_tokens, "--tiktoken-num-special-tokens",
                 take<&tokenizer_options::tiktoken_num_special_tokens>},
    known_option{sentencepiece_flags, "--tokenizer-sentencepiece-legacy",
                 take<&tokenizer_options::sentencepiece_legacy>},
    known_option{sentencepiece_flags, "--no-tokenizer-sentencepiece-ignore-extra-whitespaces",
                 take<&tokenizer_options::sentencepiece_ignore_extra_whitespaces>},
    known_option{hf_flags, "--tokenizer-hf-no-include-special-tokens",
                 take<&tokenizer_options::hf_include_special_tokens>},
    known_option{null_flags, "--null-tokenizer-eod-id", take<&tokenizer_options::null_eod_id>},
    known_option{null_flags, "--null-tokenizer-pad-id", take<&tokenizer_options::null_pad_id>},
};

// A tokenizer type, with its required options, its other options, those that Megatron accepts for
// it but does not use, and the function that builds it.
struct known_type {
  std::string_view name;
  option_set needs;
  option_set takes;
  option_set ignores;
  std::unique_ptr<tokenizer> (*make)(const tokenizer_options&);
};

std::unique_ptr<tokenizer> with_chosen_eod(std::unique_ptr<tokenizer> made,
                                           const tokenizer_options& options) {
  if (options.eod_token.empty()) return made;
  return detail::with_eod(std::move(made), options.eod_token);
}

std::unique_ptr<tokenizer> make_byte_level(const tokenizer_options&) {
  return std::make_unique<detail::byte_level_tokenizer>();
}
std::unique_ptr<tokenizer> make_null(const tokenizer_options& options) {
  return std::make_unique<detail::null_tokenizer>(options.vocab_size.value(), options.null_eod_id);
}
std::unique_ptr<tokenizer> make_gpt2(const tokenizer_options& options) {
  return with_chosen_eod(detail::make_gpt2_tokenizer(options.vocab_file, options.merge_file,
                                                     {.special_tokens = options.special_tokens,
                                                      .in_text = options.in_text}),
                         options);
}
std::unique_ptr<tokenizer> make_sentencepiece(const tokenizer_options& options) {
  if (options.sentencepiece_legacy) {
    throw config_error(
        "--tokenizer-sentencepiece-legacy is not supported: it splits texts at special tokens "
        "before "
        "the model sees them; omit it to get the ids of the model itself");
  }
  detail::sentencepiece_options given;
  given.special_tokens = options.in_text;
  given.ignore_extra_whitespaces = options.sentencepiece_ignore_extra_whitespaces;
  given.eod_token = options.eod_token;
  return detail::make_sentencepiece_tokenizer(options.model, given);
}
detail::hugging_face_options hugging_face_options_of(const tokenizer_options& options) {
  return {.include_special_tokens = options.hf_include_special_tokens,
          .special_tokens = options.special_tokens,
          .in_text = options.in_text};
}
std::unique_ptr<tokenizer> make_hugging_face(const tokenizer_options& options) {
  return with_chosen_eod(
      detail::make_hugging_face_tokenizer(options.model, hugging_face_options_of(options)),
      options);
}
template <bool LowerCase>
std::unique_ptr<tokenizer> make_bert(const tokenizer_options& options) {
  return with_chosen_eod(detail::make_bert_word_piece_tokenizer(options.vocab_file, LowerCase,
                                                                hugging_face_options_of(options)),
                         options);
}

constexpr option_set tiktoken_flags = tiktoken_pattern | tiktoken_num_special_tokens;
constexpr option_set ignored_by_megatron =
    model | vocab_size | sentencepiece_flags | tiktoken_flags | null_flags;
constexpr option_set ignored_by_sentencepiece =
    vocab_file | merge_file | vocab_size | special_tokens | hf_flags | tiktoken_flags | null_flags;

// What each type ignores is that of build_tokenizer() in megatron-core 0.19.2. Megatron has no
// ByteLevelTokenizer. It passes vocab_file and merge_file on for a HuggingFaceTokenizer, and
// merge_file for BERT, so these are refused.
constexpr std::array known_types = {
    known_type{"ByteLevelTokenizer", 0, 0, 0, make_byte_level},
    known_type{"NullTokenizer", vocab_size, null_flags,
               model | vocab_file | merge_file | special_tokens | hf_flags | sentencepiece_flags |
                   tiktoken_flags,
               make_null},
    known_type{"GPT2BPETokenizer", vocab_file | merge_file, special_tokens | in_text | eod_token,
               ignored_by_megatron, make_gpt2},
    known_type{"SentencePieceTokenizer", model, sentencepiece_flags | in_text | eod_token,
               ignored_by_sentencepiece, make_sentencepiece},
    known_type{"GPTSentencePieceTokenizer", model, sentencepiece_flags | in_text | eod_token,
               ignored_by_sentencepiece, make_sentencepiece},
    known_type{"Llama2Tokenizer", model, sentencepiece_flags | in_text | eod_token,
               ignored_by_sentencepiece, make_sentencepiece},
    known_type{"HuggingFaceTokenizer", model, hf_flags | special_tokens | in_text | eod_token,
               vocab_size | sentencepiece_flags | tiktoken_flags | null_flags, make_hugging_face},
    known_type{"BertWordPieceLowerCase", vocab_file,
               hf_flags | special_tokens | in_text | eod_token, ignored_by_megatron,
               make_bert<true>},
    known_type{"BertWordPieceCase", vocab_file, hf_flags | in_text | eod_token,
               ignored_by_megatron | special_tokens, make_bert<false>},
    known_type{"TikTokenizer", model,
               vocab_size | special_tokens | in_text | eod_token | tiktoken_flags,
               vocab_file | merge_file | sentencepiece_flags | hf_flags | null_flags,
               detail::make_tiktoken_tokenizer},
};

// A tokenizer type of Megatron that is not supported, and the reason.
struct refused_type {
  std::string_view name;
  std::string_view reason;
};

constexpr std::array refused_types = {
    refused_type{"MultimodalTokenizer",
                 "tokenizes conversations with images in a prompt format, not texts; its text "
                 "tokenizer is a HuggingFaceTokenizer with the same --tokenizer-model"},
    refused_type{"NullMultimodalTokenizer",
                 "makes up ids for images and does not tokenize texts; for texts that are ids, use "
                 "NullTokenizer"},
    refused_type{"SFTTokenizer",
                 "tokenizes conversations with a chat template and masks, not texts; its text "
                 "tokenizer is a HuggingFaceTokenizer with the same --tokenizer-model"},
};

const known_type& type_of(const tokenizer_options& options) {
  for (const refused_type& refused : refused_types) {
    if (refused.name != options.type) continue;
    throw config_error("--tokenizer-type " + options.type + ": " + std::string(refused.reason));
  }
  std::string names;
  for (const known_type& known : known_types) {
    if (known.name == options.type) return known;
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  const std::string_view likely = detail::likely_type(options.type);
  throw config_error(
      "--tokenizer-type '" + options.type + "': unknown, " +
      (likely.empty() ? "expected one of " + names : "did you mean " + std::string(likely) + "?"));
}

void check_options(const known_type& type, const tokenizer_options& options) {
  if (options.vocab_extra_ids) {
    throw config_error(
        "--vocab-extra-ids is not supported: Megatron's tokenizers ignore it; pass the tokens "
        "themselves: --tokenizer-special-tokens '<extra_id_0>' '<extra_id_1>' ...");
  }
  for (const known_option& option : known_options) {
    const bool given = option.given(options);
    const bool needed = (type.needs & option.option) != 0;
    if (given ? needed || (type.takes & option.option) != 0 : !needed) continue;
    throw config_error("--tokenizer-type " + std::string(type.name) +
                       (given ? " does not take " : " requires ") + std::string(option.flag));
  }
}

std::unique_ptr<tokenizer> make_of_files(const known_type& type, const tokenizer_options& options) {
  try {
    return type.make(options);
  } catch (const error& e) {
    // A config_error reports wrong flags. Advice about the file of `--tokenizer-model` can help
    // only if that file exists.
    const bool of_flags = dynamic_cast<const config_error*>(&e) != nullptr;
    if (of_flags && !io::is_there(options.model)) throw;
    const std::string advice = detail::file_advice(options);
    if (!advice.empty()) throw config_error(advice);
    const auto* fault = dynamic_cast<const format_error*>(&e);
    const std::string not_it = fault != nullptr ? detail::not_the_model(options) : "";
    if (not_it.empty()) throw;
    throw format_error(fault->path(), fault->offset(), not_it + ": " + fault->problem());
  }
}

}  // namespace

std::unique_ptr<tokenizer> make_tokenizer(const tokenizer_options& options) {
  const known_type& type = type_of(options);
  check_options(type, options);
  const std::string unknown_isa = detail::fault_of_isa(detail::isa_variable());
  if (!unknown_isa.empty()) throw config_error(unknown_isa);
  const auto make = [&] { return make_of_files(type, options); };
  return options.cache.empty() ? make() : detail::make_with_cache(options, make);
}

std::vector<std::string> drop_unused_flags(tokenizer_options& options) {
  const option_set ignored = type_of(options).ignores;
  std::vector<std::string> dropped;
  for (const known_option& option : known_options) {
    if ((ignored & option.option) != 0 && option.take(options)) dropped.emplace_back(option.flag);
  }
  if (ignored != 0 && take<&tokenizer_options::vocab_extra_ids>(options))
    dropped.emplace_back("--vocab-extra-ids");
  return dropped;
}

std::string missing_eod(const tokenizer_options& options) {
  if (options.type == "HuggingFaceTokenizer") return detail::advice_on_eod(options.model);
  return "the tokenizer's files define no end-of-document token; pass --eod-token";
}

std::string optional_parts() {
  const std::string version = detail::pcre2_version();
  return version.empty() ? "without PCRE2" : "PCRE2 " + version;
}

}  // namespace millrace::tokenizer
