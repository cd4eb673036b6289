// SPDX-License-Identifier: Apache-2.0
#include "run/fim_flags.hpp"

#include <array>
#include <string>

#include <fmt/format.h>

#include <millrace/command/run_command.hpp>

#include "run/parse_number.hpp"

namespace millrace::preprocess {
namespace {

namespace po = boost::program_options;
using command::usage_error;

constexpr const char* rate_flag = "fim-rate";
constexpr std::array dependent_flags = {"fim-spm-rate",      "fim-seed",        "fim-split-sample",
                                        "fim-fragment-rate", "fim-no-prefix",   "fim-prefix-token",
                                        "fim-middle-token",  "fim-suffix-token"};

bool take_text(const po::variables_map& given, const char* flag, std::string& to) {
  if (given.count(flag) == 0) return false;
  to = given[flag].as<std::string>();
  if (to.empty()) throw usage_error(fmt::format("--{}: expected a text that is not empty", flag));
  return true;
}

bool take_rate(const po::variables_map& given, const char* flag, double& rate) {
  if (given.count(flag) == 0) return false;
  const auto& text = given[flag].as<std::string>();
  if (!parse_number(text, rate) || !(rate >= 0 && rate <= 1)) {
    throw usage_error(fmt::format("--{} {}: expected a number from 0 to 1, e.g. 0.5", flag, text));
  }
  return true;
}

void refuse_contradictions(const po::variables_map& given) {
  if (given.count("messages-key") != 0) {
    throw usage_error(
        "--fim-rate permutes plain texts, but --messages-key renders conversations; omit one");
  }
  if (given.count("split-sentences") != 0) {
    throw usage_error(
        "--fim-rate permutes whole texts, but --split-sentences cuts them into sentences; omit "
        "one");
  }
  if (given.count("tokenizer-type") != 0 &&
      given["tokenizer-type"].as<std::string>() == "NullTokenizer") {
    throw usage_error(
        "--fim-rate cuts texts between any two characters, and NullTokenizer cannot encode the "
        "parts of a number; pass another --tokenizer-type");
  }
}

}  // namespace

po::options_description fim_group() {
  po::options_description group("Fill in the middle");
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  auto add = group.add_options();
  add("fim-rate", text("R"),
      "permute about this part of the documents for fill-in-the-middle training, from 0 to 1: cut "
      "the text at two random characters into prefix, middle and suffix, and move the middle to "
      "the end. The draws of a document depend on --fim-seed, the name of its input and the place "
      "in it, so workers, tasks and --resume do not change them");
  add("fim-spm-rate", text("S"),
      "part of the permuted documents in the order suffix, prefix, middle; the others have the "
      "order prefix, suffix, middle (default: 0.5)");
  add("fim-seed", text("N"), "other draws for the same documents (default: 0)");
  add("fim-prefix-token", text("TOKEN"), "token before the prefix (default: <fim_prefix>)");
  add("fim-middle-token", text("TOKEN"), "token before the middle (default: <fim_middle>)");
  add("fim-suffix-token", text("TOKEN"), "token before the suffix (default: <fim_suffix>)");
  add("fim-split-sample", text("TOKEN"),
      "permute the fragments between these tokens, one by one, e.g. the files of a repository; "
      "requires --fim-fragment-rate");
  add("fim-fragment-rate", text("F"),
      "with --fim-split-sample: part of the fragments to permute in the documents that --fim-rate "
      "selects");
  add("fim-no-prefix", text("TEXT"), "do not permute texts and fragments that begin with TEXT");
  return group;
}

std::optional<fim_options> fim_options_of(const po::variables_map& given) {
  fim_options fim;
  if (!take_rate(given, rate_flag, fim.rate)) {
    for (const char* flag : dependent_flags) {
      if (given.count(flag) != 0) throw usage_error(fmt::format("--{} requires --fim-rate", flag));
    }
    return std::nullopt;
  }
  refuse_contradictions(given);
  take_rate(given, "fim-spm-rate", fim.spm_rate);
  std::string seed;
  if (take_text(given, "fim-seed", seed) && !parse_number(seed, fim.seed)) {
    throw usage_error(fmt::format("--fim-seed {}: expected 0 to 2^64 - 1", seed));
  }
  take_text(given, "fim-prefix-token", fim.prefix_token);
  take_text(given, "fim-middle-token", fim.middle_token);
  take_text(given, "fim-suffix-token", fim.suffix_token);
  take_text(given, "fim-no-prefix", fim.no_prefix);
  const bool is_split = take_text(given, "fim-split-sample", fim.split_token);
  const bool has_fragments = take_rate(given, "fim-fragment-rate", fim.fragment_rate);
  if (is_split && !has_fragments) {
    throw usage_error("--fim-split-sample requires --fim-fragment-rate, a number from 0 to 1");
  }
  if (has_fragments && !is_split) {
    throw usage_error("--fim-fragment-rate requires --fim-split-sample");
  }
  return fim;
}

}  // namespace millrace::preprocess
