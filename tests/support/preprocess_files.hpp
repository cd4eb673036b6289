// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "input/input_plan.hpp"
#include "report/progress.hpp"
#include "run/pipeline.hpp"
#include "support/paths.hpp"

/// Preprocesses files within this process, without starting preprocess_data.
namespace millrace::test {

/// The bytes of a `.bin` and its `.idx`.
struct dataset_bytes {
  std::string bin;
  std::string idx;

  bool operator==(const dataset_bytes&) const = default;
};

inline dataset_bytes read_dataset(const std::filesystem::path& prefix) {
  return {read_text(prefix.string() + ".bin"), read_text(prefix.string() + ".idx")};
}

/// Preprocesses `inputs`. Prints nothing except notes about skipped records.
inline preprocess::run_summary preprocess_files(const tokenizer::tokenizer& tokenizer,
                                                const std::vector<std::string>& inputs,
                                                preprocess::run_options options) {
  options.inputs = preprocess::plan_inputs(inputs);
  preprocess::progress quiet(preprocess::progress::style::silent, 1, 0);
  return preprocess::run(tokenizer, options, quiet);
}

}  // namespace millrace::test
