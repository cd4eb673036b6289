// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset/run/edits.hpp>
#include <millrace/export.hpp>

namespace millrace::dataset {

/// A dataset of a run: what tells it from others.
struct state_source {
  std::string prefix = {};  ///< where it was; may change
  double weight = 1;        ///< in the blend, where there is no schedule, and weights count
  std::int64_t tokens = 0;
  std::int64_t sequences = 0;
  std::int64_t documents = 0;
  std::int64_t bin_bytes = 0;
  std::int64_t idx_bytes = 0;
  std::string root = {};  ///< of the `.sum`, 64 hexadecimal digits; empty where there is none

  /// What the order instant is keyed by; empty: the file name of `prefix`.
  std::string name = {};

  friend bool operator==(const state_source&, const state_source&) = default;
};

/// What is blended from a step on.
struct state_segment {
  std::int64_t first_step = 0;
  std::vector<std::int64_t> sources = {};  ///< numbers in `data`
  std::vector<double> weights = {};        ///< one for each

  friend bool operator==(const state_segment&, const state_segment&) = default;
};

/// Where a run is, and every option that decides what comes next: all that has to be saved with a
/// checkpoint. The same on every rank; nothing in it depends on the number of ranks, micro-batch
/// size or workers, but where the sampler does (`cyclic`).
struct run_state {
  std::string order = "instant";  ///< or megatron, or stored: one dataset from end to end, stored
  std::uint64_t seed = 1234;      ///< all 64 bits count for instant, 32 for megatron
  std::int64_t seq_len = 0;
  bool extra_token = true;
  std::string packing = "none";  ///< or best_fit
  std::int64_t pad_documents_to = 1;
  std::string split = {};                  ///< as given, e.g. "969, 30, 1"; empty: none
  std::string split_part = "train";        ///< or valid, test
  std::vector<std::int64_t> samples = {};  ///< asked of train, valid, test; -1: one epoch.
                                           ///< They are part of the order where it is megatron
  double surplus = 0.005;                  ///< mid_level_dataset_surplus
  /// Of megatron: datasets have weights. Else, as where it is given paths alone, they are blended
  /// by their lengths, or each sample is served once where no number of samples is asked for.
  bool weighted = true;
  /// Of a blend of megatron, whose choices depend on it: twice, or fused (blend_rounding.hpp).
  std::string blend_rounding = "twice";
  bool drop_last_partial_sequence = true;  ///< drop_last_partial_validation_sequence
  std::int64_t global_batch = 0;
  std::vector<std::int64_t> rampup_batch = {};  ///< start, increment, samples; empty: none
  std::string sampler = "single";               ///< or cyclic, full_validation, hybrid
  std::int64_t micro_batch = 0;                 ///< of cyclic only; else 0
  std::int64_t ranks = 0;                       ///< of cyclic only: data-parallel ranks; else 0
  std::int64_t sampled = 0;                     ///< of cyclic only: samples of the dataset; else 0
  bool data_sharding = true;                    ///< of cyclic only
  std::string tokenizer = {};                   ///< its fingerprint, as in `.meta`
  std::vector<state_source> data = {};
  std::vector<state_segment> schedule = {};  ///< empty: the weights in `data`, all along
  std::vector<edit> edits = {};
  std::int64_t consumed_samples = 0;  ///< by the trainer, over all ranks

  friend bool operator==(const run_state&, const run_state&) = default;
};

/// The state as one line of JSON, every option by its name.
///
/// @throws config_error  a number is not finite, or a string not UTF-8.
MILLRACE_EXPORT std::string write_state(const run_state& state);

/// Whether the options can be those of a run, each for itself: what needs the data, or other
/// options, is for the order to say.
///
/// @throws config_error  one is out of range; the message names it as the JSON does.
MILLRACE_EXPORT void check(const run_state& state);

/// Parses what `write_state` wrote, or what somebody wrote by hand: options that are missing have
/// their usual values.
///
/// @throws format_error  it is no JSON.
/// @throws config_error  it is no state, or of another version; an option is unknown, not of its
///                       type, or refused by `check`.
MILLRACE_EXPORT run_state parse_state(std::string_view text);

}  // namespace millrace::dataset
