// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <millrace/dataset/detail/megatron/gpt_cache.hpp>
#include <millrace/dataset/detail/megatron/gpt_plan.hpp>
#include <millrace/dataset/detail/megatron/python_json.hpp>
#include <millrace/dataset/detail/megatron/split.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// Options shared by all caches of a run, over all parts and datasets.
struct gpt_cache_options {
  std::filesystem::path folder;  ///< Megatron's --data-cache-path
  std::int64_t sequence_length = 0;
  std::uint32_t random_seed = 1234;
  std::optional<std::string> split;  ///< as typed; nullopt if each part has its own data
  python_json tokenizer;             ///< the tokenizer's `unique_identifiers`
  bool add_extra_token = true;
  bool drop_last_partial_validation_sequence = true;
  int threads = 1;                         ///< 1 or 2
  check_level check = check_level::quick;  ///< how to check an existing cache
};

/// A part of a dataset for which a matching cache exists.
struct prepared_gpt_cache {
  gpt_description description;
  gpt_plan plan;
  bool built = false;  ///< false if the cache existed before
};

/// Ensures that the cache folder has the indices for a part of `prefix`. Without this call,
/// Megatron's rank 0 writes the same files before training (megatron-core, GPTDataset). Reads the
/// `.idx`, not the tokens.
///
/// @param prefix       the path as typed, because the file names contain its hash
/// @param num_samples  nullopt means one epoch
/// @return nullopt if the split gives the part no weight; Megatron then makes no dataset for it
/// @throws config_error  as `plan_gpt_index`; the existing cache and the options disagree on
///                       whether samples have an extra token; or one epoch is requested and the
///                       sequence length exceeds the tokens of the dataset or of its train part.
/// @throws format_error  as `gpt_cache::load`, or the dataset is damaged.
/// @throws io_error      the dataset cannot be read or the cache cannot be written.
MILLRACE_EXPORT std::optional<prepared_gpt_cache> prepare_gpt_cache(
    const gpt_cache_options& options, const std::string& prefix, split_part part,
    std::optional<std::int64_t> num_samples);

}  // namespace millrace::dataset
