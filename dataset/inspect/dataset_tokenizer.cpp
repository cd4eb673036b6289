// SPDX-License-Identifier: Apache-2.0
#include "dataset_tokenizer.hpp"

#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <millrace/command/run_command.hpp>
#include <millrace/command/text.hpp>
#include <millrace/error.hpp>
#include <millrace/io/file_ops.hpp>
#include <millrace/meta/dataset_meta.hpp>
#include <millrace/tokenizer/tokenizer_flags.hpp>

#include "inspect.hpp"
#include "meta.hpp"

namespace millrace::inspect {

namespace po = boost::program_options;

namespace {

using formats::tokenizer_identity;
using tokenizer_pointer = std::shared_ptr<const tokenizer::tokenizer>;

/// A tokenizer, or the reason why there is none.
struct found_tokenizer {
  tokenizer_pointer made = nullptr;
  std::string why = {};
};

/// A path of a `.meta` is relative to where preprocess_data ran. If that is not here, the files may
/// lie next to the dataset. Only files and folders are opened: a `.meta` may come from anywhere.
void find_files(std::filesystem::path& path, const std::filesystem::path& folder) {
  if (path.empty()) return;
  if (path.is_relative() && !std::filesystem::exists(path)) {
    if (std::filesystem::exists(folder / path)) path = folder / path;
  }
  if (io::is_there(path) && !io::is_file(path) && !io::is_folder(path)) {
    throw config_error(path.string() + " is neither a file nor a folder");
  }
}

/// The tokenizer that PREFIX.meta names: one without files, or one whose files are where they were.
found_tokenizer tokenizer_of(const tokenizer_identity& made_by,
                             const std::filesystem::path& folder) {
  tokenizer::tokenizer_options options;
  try {
    if (!made_by.flags.empty()) {
      po::variables_map given;
      po::store(po::command_line_parser(made_by.flags).options(tokenizer::tokenizer_flags()).run(),
                given);
      given.insert({"tokenizer-type", po::variable_value(boost::any(made_by.type), false)});
      options = tokenizer::tokenizer_options_of(given).value();
      options.cache.clear();  // looking at a dataset writes nothing
      for (auto* path : {&options.model, &options.vocab_file, &options.merge_file}) {
        find_files(*path, folder);
      }
    } else if (made_by.type == "NullTokenizer") {
      options.type = made_by.type;
      options.vocab_size = made_by.vocab_size;
      if (made_by.eod != made_by.vocab_size - 1) options.null_eod_id = made_by.eod;
    } else if (made_by.type != "ByteLevelTokenizer") {
      return {};
    }
    tokenizer_pointer made = tokenizer::make_tokenizer(options);
    if (made->fingerprint() == made_by.fingerprint) return {std::move(made)};
    return {.why = "the files that the .meta names have changed"};
  } catch (const std::exception& e) {
    return {.why = e.what()};  // e.g. a missing file, or a flag that this version does not know
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
  found_tokenizer found = tokenizer_of(meta->tokenizer, io::parent_folder(data.prefix()));
  place->second = std::move(found.made);
  if (!place->second) {
    command::tell(fmt::format(
        "{}: ids only{}; to see the text, pass --tokenizer-type {} and the files that the dataset "
        "was made with\n",
        program_name, found.why.empty() ? "" : " (" + command::one_line(found.why) + ")",
        meta->tokenizer.type == unknown_tokenizer ? "TYPE"
                                                  : command::one_line(meta->tokenizer.type)));
  }
  return place->second;
}

}  // namespace millrace::inspect
