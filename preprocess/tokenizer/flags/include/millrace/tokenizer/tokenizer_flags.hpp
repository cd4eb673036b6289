// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <boost/program_options.hpp>

#include <millrace/command/run_command.hpp>
#include <millrace/tokenizer/make_tokenizer.hpp>

/// Megatron's tokenizer flags, for every program that takes them. Private: not installed, so that
/// the library itself needs no Boost.
namespace millrace::tokenizer {

inline boost::program_options::options_description tokenizer_flags() {
  namespace po = boost::program_options;
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  po::options_description group("Tokenizer");
  auto add = group.add_options();
  add("tokenizer-type", text("TYPE"),
      "ByteLevelTokenizer, GPT2BPETokenizer (--vocab-file, --merge-file) or NullTokenizer "
      "(--vocab-size)");
  add("tokenizer-model", text("FILE"), "for types that are one file");
  add("vocab-file", text("FILE"), "vocab.json");
  add("merge-file", text("FILE"), "merges.txt");
  add("vocab-size", po::value<std::int64_t>()->value_name("N"),
      "for types without a vocabulary of their own");
  return group;
}

/// What the flags say, or nothing where none is given.
///
/// @throws usage_error  a flag is given without --tokenizer-type.
inline std::optional<tokenizer_options> tokenizer_options_of(
    const boost::program_options::variables_map& given) {
  tokenizer_options options;
  const auto take = [&]<class T, class To>(const char* flag, T, To& to) {
    const auto& value = given[flag];
    if (!value.empty()) to = value.as<T>();
    return !value.empty();
  };
  const bool typed = take("tokenizer-type", std::string(), options.type);
  const char* other = nullptr;
  if (take("tokenizer-model", std::string(), options.model)) other = "tokenizer-model";
  if (take("vocab-file", std::string(), options.vocab_file)) other = "vocab-file";
  if (take("merge-file", std::string(), options.merge_file)) other = "merge-file";
  if (take("vocab-size", std::int64_t(), options.vocab_size)) other = "vocab-size";
  if (typed) return options;
  if (other == nullptr) return std::nullopt;
  throw command::usage_error(std::string("--") + other + " is given without --tokenizer-type, " +
                             "which says how to use it, e.g. GPT2BPETokenizer");
}

/// make_tokenizer for a program: which flags a type takes is a matter of the command line, what
/// its files hold is not.
///
/// @throws usage_error              the type does not take a flag, or misses one.
/// @throws io_error, format_error   as make_tokenizer
inline std::unique_ptr<tokenizer> open_tokenizer(const tokenizer_options& options) {
  try {
    return make_tokenizer(options);
  } catch (const config_error& e) {
    throw command::usage_error(e.what());
  }
}

}  // namespace millrace::tokenizer
