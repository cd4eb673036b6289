// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <millrace/dataset/detail/megatron/gpt_description.hpp>
#include <millrace/dataset/detail/megatron/gpt_plan.hpp>
#include <millrace/dataset/detail/megatron/python_json.hpp>
#include <millrace/dataset/detail/megatron/split.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// What the caches of a run have in common, over all parts and datasets.
struct gpt_cache_options {
  std::filesystem::path folder;  ///< Megatron's --data-cache-path
  std::int64_t sequence_length = 0;
  std::uint32_t random_seed = 1234;
  std::optional<std::string> split;  ///< as typed; nothing where each part has its own data
  python_json tokenizer;             ///< the tokenizer's `unique_identifiers`
  bool add_extra_token = true;
  bool drop_last_partial_validation_sequence = true;
  int threads = 1;                         ///< 1 or 2
  check_level check = check_level::quick;  ///< of what was there before
};

/// A dataset's part whose cache is there and fits.
struct prepared_gpt_cache {
  gpt_description description;
  gpt_plan plan;
  bool built = false;  ///< or was there before
};

/// Sees to it that the indices of a part of PREFIX are in the folder: what Megatron's rank 0 does
/// before training, with the same files (megatron-core, GPTDataset). Reads the `.idx`, not the
/// tokens.
///
/// @param prefix       as typed: it enters the names of the files
/// @param num_samples  nothing means one epoch
/// @return nothing if the split gives the part no weight: Megatron makes no dataset of it
/// @throws config_error  as plan_gpt_index, gpt_cache::load; what was there has an extra token and
///                       is not to, or has none; or one epoch is asked for, and the sequence length
///                       is above all tokens of the dataset, or of its train part.
/// @throws io_error, format_error  the dataset cannot be read, the cache not be written.
MILLRACE_EXPORT std::optional<prepared_gpt_cache> prepare_gpt_cache(
    const gpt_cache_options& options, const std::string& prefix, split_part part,
    std::optional<std::int64_t> num_samples);

}  // namespace millrace::dataset
