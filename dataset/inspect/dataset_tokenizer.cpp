// SPDX-License-Identifier: Apache-2.0
#include "dataset_tokenizer.hpp"

#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <millrace/command/run_command.hpp>
#include <millrace/command/text.hpp>
#include <millrace/error.hpp>
#include <millrace/meta/dataset_meta.hpp>
#include <millrace/tokenizer/tokenizer_flags.hpp>

#include "inspect.hpp"
#include "meta.hpp"

namespace millrace::inspect {

namespace po = boost::program_options;

namespace {

using formats::tokenizer_identity;
using tokenizer_pointer = std::shared_ptr<const tokenizer::tokenizer>;

/// The tokenizer that PREFIX.meta names, if it can be built without files; otherwise null.
tokenizer_pointer tokenizer_of(const tokenizer_identity& made_by) {
  tokenizer::tokenizer_options options;
  options.type = made_by.type;
  if (made_by.type == "NullTokenizer") {
    options.vocab_size = made_by.vocab_size;
    if (made_by.eod != made_by.vocab_size - 1) options.null_eod_id = made_by.eod;
  } else if (made_by.type != "ByteLevelTokenizer") {
    return nullptr;
  }
  try {
    tokenizer_pointer made = tokenizer::make_tokenizer(options);
    return made->fingerprint() == made_by.fingerprint ? std::move(made) : nullptr;
  } catch (const error&) {
    return nullptr;  // e.g. a vocabulary that this version has no tokenizer for
  }
}

void expect_same(const tokenizer::tokenizer& named, const tokenizer_identity& made_by) {
  if (named.fingerprint() == made_by.fingerprint || made_by.type == unknown_tokenizer) return;
  throw config_error(fmt::format(
      "the dataset was made with another tokenizer: {} of {} ids with fingerprint {}, but the "
      "flags name one of {} ids with fingerprint {}; pass the flags and files that the dataset was "
      "made with, --eod-token included, or --force",
      command::one_line(made_by.type), made_by.vocab_size, made_by.fingerprint.substr(0, 12),
      named.vocab_size(), named.fingerprint().substr(0, 12)));
}

}  // namespace

void add_tokenizer_flags(po::options_description& own) {
  own.add_options()("force", po::bool_switch());
  own.add(tokenizer::tokenizer_flags());
}

dataset_tokenizers::dataset_tokenizers(const command_line& line, const std::string& help)
    : forced_(line.values["force"].as<bool>()) {
  try {
    if (const auto options = tokenizer::tokenizer_options_of(line.values)) {
      named_ = tokenizer::open_tokenizer(*options);
    }
  } catch (const command::usage_error& e) {
    throw misuse(e.what(), help);
  }
  if (forced_ && !named_) throw misuse("--force requires --tokenizer-type", help);
}

std::shared_ptr<const tokenizer::tokenizer> dataset_tokenizers::find(
    const dataset::indexed_dataset& data) {
  if (forced_) return named_;
  const auto meta = find_meta(data);
  if (!meta) return named_;
  if (named_) {
    expect_same(*named_, meta->tokenizer);
    return named_;
  }
  const auto [place, is_new] = found_.try_emplace(meta->tokenizer.fingerprint);
  if (!is_new) return place->second;
  place->second = tokenizer_of(meta->tokenizer);
  if (!place->second) {
    command::tell(fmt::format(
        "{}: ids only; to see the text, pass --tokenizer-type {} and the files that the dataset "
        "was made with\n",
        program_name,
        meta->tokenizer.type == unknown_tokenizer ? "TYPE"
                                                  : command::one_line(meta->tokenizer.type)));
  }
  return place->second;
}

}  // namespace millrace::inspect
