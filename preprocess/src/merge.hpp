// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include <millrace/formats/dtype.hpp>

namespace millrace::preprocess {

/// One run of merge_datasets.
struct merge_options {
  std::filesystem::path input;          ///< `--input`: a folder of .bin/.idx pairs
  std::filesystem::path output_prefix;  ///< `--output-prefix`
  bool multimodal = false;              ///< `--multimodal`: keep the modes of the sequences
  bool overwrite = false;               ///< `--overwrite`
};

struct merge_summary {
  std::vector<std::filesystem::path> prefixes;  ///< of the inputs, in the order of the output
  std::int64_t sequences = 0;
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
  formats::dtype type{};
};

/// Concatenates the datasets of a folder, sorted by the bytes of their names, in constant memory.
/// Every file of the folder must belong to one, hidden files too; folders in it are passed over.
/// Empty datasets may be among them, the first too.
///
/// @throws config_error  the folder has no dataset, or a file that belongs to none; dtypes differ;
///                       `multimodal` and a dataset has no modes; the output exists.
/// @throws io_error, format_error  an input or the output failed. Nothing shows under the final
///                       names.
merge_summary merge(const merge_options& options);

}  // namespace millrace::preprocess
