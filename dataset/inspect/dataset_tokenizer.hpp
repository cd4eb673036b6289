// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/tokenizer/tokenizer.hpp>

#include "command_line.hpp"

/// The tokenizer of a dataset: the one that the flags select, or the one that its `.meta` names.
namespace millrace::inspect {

/// The type of the tokenizer in a `.meta` that `convert` wrote: whoever made the ids did not say.
inline constexpr const char* unknown_tokenizer = "unknown";

/// Adds the tokenizer flags of `preprocess_data`, and `--force`.
void add_tokenizer_flags(boost::program_options::options_description& own);

/// Finds the tokenizers of datasets. Tells the user once what to pass if one is not found.
class dataset_tokenizers {
 public:
  /// Reads the flags, and the tokenizer's files if the flags name a tokenizer.
  ///
  /// @param help  help text of the verb
  /// @throws usage_error  the flags contradict each other or name no tokenizer
  /// @throws io_error, format_error  as `make_tokenizer`
  dataset_tokenizers(const command_line& line, const std::string& help);

  /// The tokenizer of a dataset; null if it is unknown.
  /// @throws config_error  the flags name another tokenizer than the `.meta`, without `--force`
  std::shared_ptr<const tokenizer::tokenizer> find(const dataset::indexed_dataset& data);

 private:
  using pointer = std::shared_ptr<const tokenizer::tokenizer>;

  pointer named_;
  bool forced_ = false;
  std::map<std::string, pointer> found_;  // key: fingerprint
};

}  // namespace millrace::inspect
