// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <millrace/dataset/detail/megatron/split.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// What a GPTDataset of Megatron is asked for. The names are those of its configuration.
struct gpt_request {
  std::int64_t sequence_length = 0;
  std::optional<std::int64_t> num_samples = {};  ///< at least so many; nothing means one epoch
  split_part part = split_part::train;
  std::uint32_t random_seed = 1234;
  bool add_extra_token = true;  ///< windows are one token longer than their step, for the labels
  bool drop_last_partial_validation_sequence = true;
};

/// The sizes of its three indices, which follow from how many sequences and tokens there are.
///
/// All counts are of the whole dataset, over all epochs, unless they say otherwise.
struct gpt_plan {
  sequence_range sequences;  ///< of the `.idx`: what Megatron calls documents here
  std::int64_t sequence_length = 0;
  std::int64_t extra_token = 1;  ///< 0 or 1
  std::uint32_t random_seed = 1234;

  std::int64_t tokens_per_epoch = 0;
  std::int64_t epochs = 1;
  /// Whether the last epoch is shuffled apart from those before it: it is needed in part only.
  bool separate_last_epoch = false;
  std::int64_t samples_before_last_epoch = 0;  ///< if it is separate
  std::int64_t samples = 0;
  bool last_sample_is_partial = false;

  bool wide_sample_index = false;   ///< int64 entries, not int32
  bool wide_shuffle_index = false;  ///< int64 entries, not uint32

  std::int64_t tokens() const noexcept { return epochs * tokens_per_epoch; }
  std::int64_t document_entries() const noexcept { return epochs * sequences.size(); }
  friend bool operator==(const gpt_plan&, const gpt_plan&) = default;
};

/// Megatron's arithmetic for a dataset, with its quirks: one epoch unless more are needed, a
/// separate last epoch if less than 0.80 of it is, a partial last sample counted in single
/// precision (megatron-core, gpt_dataset.py and helpers.cpp).
///
/// @param sequences         those the dataset may use
/// @param tokens_per_epoch  in all of them
/// @param whose             named by errors: a path, a part
/// @throws config_error  an option is out of range; samples are wanted of no tokens, where Megatron
///                       loops forever; counts pass 63 bits, or numbers of sequences 31; single
///                       precision counts samples that are not there, or fewer than are asked for,
///                       where Megatron stops.
MILLRACE_EXPORT gpt_plan plan_gpt_index(const gpt_request& request, sequence_range sequences,
                                        std::int64_t tokens_per_epoch, const std::string& whose);

}  // namespace millrace::dataset
