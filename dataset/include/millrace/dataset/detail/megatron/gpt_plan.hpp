// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <millrace/dataset/detail/megatron/split.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

class indexed_dataset;

/// The options of a Megatron GPTDataset, with the names of its configuration.
struct gpt_request {
  std::int64_t sequence_length = 0;
  std::optional<std::int64_t> num_samples = {};  ///< at least this many; nullopt means one epoch
  split_part part = split_part::train;
  std::uint32_t random_seed = 1234;
  bool add_extra_token = true;  ///< samples have one more token than their stride, for the labels
  bool drop_last_partial_validation_sequence = true;
};

/// The sizes of the three indices of a GPTDataset, computed from its counts of sequences and
/// tokens.
///
/// Counts cover the whole dataset over all epochs, unless noted otherwise.
struct gpt_plan {
  sequence_range sequences;  ///< sequences of the `.idx`; Megatron calls them documents here
  std::int64_t sequence_length = 0;
  std::int64_t extra_token = 1;  ///< 0 or 1
  std::uint32_t random_seed = 1234;

  std::int64_t tokens_per_epoch = 0;
  std::int64_t epochs = 1;
  /// True if the last epoch is shuffled separately, because only part of it is needed.
  bool separate_last_epoch = false;
  std::int64_t samples_before_last_epoch = 0;  ///< if the last epoch is separate
  std::int64_t samples = 0;
  bool last_sample_is_partial = false;

  bool wide_sample_index = false;   ///< int64 entries, not int32
  bool wide_shuffle_index = false;  ///< int64 entries, not uint32

  std::int64_t tokens() const noexcept { return epochs * tokens_per_epoch; }
  std::int64_t document_entries() const noexcept { return epochs * sequences.size(); }
  friend bool operator==(const gpt_plan&, const gpt_plan&) = default;
};

/// Computes the plan with Megatron's arithmetic, including its quirks (megatron-core,
/// gpt_dataset.py and helpers.cpp). The dataset has one epoch unless the samples need more. The
/// last epoch is separate if less than 0.80 of it is needed. A partial last sample is counted in
/// single precision.
///
/// @param sequences         the sequences that the dataset may use
/// @param tokens_per_epoch  tokens in all these sequences
/// @param whose             the name to use in error messages: a path and a part
/// @throws config_error  an option is out of range; samples are requested but there are no tokens
///                       (Megatron would loop forever); a count exceeds 63 bits, or a sequence
///                       index exceeds 31 bits; the single-precision count includes samples that do
///                       not exist, or is below the requested number (Megatron would stop).
MILLRACE_EXPORT gpt_plan plan_gpt_index(const gpt_request& request, sequence_range sequences,
                                        std::int64_t tokens_per_epoch, const std::string& whose);

/// A part of a dataset, and what Megatron makes of it.
struct gpt_part {
  split_part part = split_part::train;
  gpt_plan plan;
};

/// Plans each part that has a weight in `--split`. Takes O(1) time: the number of tokens comes from
/// the pointers of the index, which agree with the lengths in a sound dataset.
///
/// @param request  for all parts; `part` and `num_samples` are ignored
/// @param samples  requested samples for train, valid and test; nullopt means one epoch
/// @throws config_error  as `plan_gpt_index`
/// @throws format_error  an entry of the index is invalid
MILLRACE_EXPORT std::vector<gpt_part> plan_gpt_parts(
    const indexed_dataset& data, const split_matrix& split, gpt_request request,
    const std::array<std::optional<std::int64_t>, 3>& samples = {});

}  // namespace millrace::dataset
