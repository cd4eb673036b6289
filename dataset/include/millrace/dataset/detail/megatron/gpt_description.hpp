// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <millrace/dataset/detail/megatron/python_json.hpp>
#include <millrace/dataset/detail/megatron/split.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/formats/detail/md5.hpp>

namespace millrace::dataset {

/// The values that identify a GPTDataset in Megatron. Their JSON text is the description file of a
/// cache, and the MD5 of that text is in the file names (formats/spec/megatron_cache.md).
struct MILLRACE_EXPORT gpt_description {
  std::string dataset_path;                 ///< the prefix as typed
  std::optional<std::int64_t> num_samples;  ///< as requested; nullopt means one epoch
  split_part part = split_part::train;
  std::uint32_t random_seed = 1234;
  std::int64_t sequence_length = 0;
  std::optional<std::string> split;  ///< as typed; nullopt if each part has its own data
  python_json tokenizer;             ///< the tokenizer's `unique_identifiers`

  /// Megatron's `unique_identifiers` of the dataset.
  /// @throws config_error  `split` is not a valid split.
  python_json identifiers() const;

  /// The text of the description file.
  std::string text() const { return identifiers().dump(); }

  /// The common prefix of the dataset's cache file names: `<md5>-GPTDataset-<part>`.
  std::string cache_name() const {
    return formats::md5_hex(text()) + "-GPTDataset-" + std::string(name(part));
  }
};

}  // namespace millrace::dataset
