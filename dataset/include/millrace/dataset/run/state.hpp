// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset/run/edits.hpp>
#include <millrace/export.hpp>

namespace millrace::dataset {

/// Identifies a dataset of a run.
struct state_source {
  std::string prefix = {};  ///< its path; may change
  double weight = 1;        ///< in the blend, if there is no schedule and weights are used
  std::int64_t tokens = 0;
  std::int64_t sequences = 0;
  std::int64_t documents = 0;
  std::int64_t bin_bytes = 0;
  std::int64_t idx_bytes = 0;
  std::string root = {};  ///< of the `.sum`, 64 hexadecimal digits; empty if there is none

  /// Key of its order `instant`; empty: the file name of `prefix`.
  std::string name = {};

  friend bool operator==(const state_source&, const state_source&) = default;
};

/// The blend from a step on.
struct state_segment {
  std::int64_t first_step = 0;
  std::vector<std::int64_t> sources = {};  ///< indices into `data`
  std::vector<double> weights = {};        ///< one per source

  friend bool operator==(const state_segment&, const state_segment&) = default;
};

/// The position of a run and every option that determines the next samples: save it with each
/// checkpoint. It is the same on every rank, and does not depend on the number of ranks, the
/// micro-batch size or the workers, unless the sampler is `cyclic`.
///
/// Example: save the state of a loader, and resume from it.
///
///     void save(const millrace::loader::batch_loader& loader, const std::filesystem::path& to) {
///       std::ofstream(to) << millrace::dataset::write_state(loader.state());
///     }
///     void resume(millrace::loader::batch_loader& loader, const std::string& json) {
///       loader.load_state(millrace::dataset::parse_state(json));
///     }
struct run_state {
  std::string order = "instant";  ///< or megatron; or stored: one dataset in stored order
  std::uint64_t seed = 1234;      ///< instant uses all 64 bits, megatron 32
  std::int64_t seq_len = 0;
  bool extra_token = true;
  std::string packing = "none";  ///< or best_fit
  std::int64_t pad_documents_to = 1;
  std::string split = {};                  ///< as given, e.g. "969, 30, 1"; empty: none
  std::string split_part = "train";        ///< or valid, test
  std::vector<std::int64_t> samples = {};  ///< requested from train, valid, test; -1: one epoch.
                                           ///< Part of the order if it is megatron
  double surplus = 0.005;                  ///< mid_level_dataset_surplus
  /// Megatron only: true if datasets have weights. Otherwise they are blended by length, or each
  /// sample is served once if no number of samples is requested.
  bool weighted = true;
  /// Megatron blends only: twice or fused (blend_rounding.hpp).
  std::string blend_rounding = "twice";
  bool drop_last_partial_sequence = true;  ///< drop_last_partial_validation_sequence
  std::int64_t global_batch = 0;
  std::vector<std::int64_t> rampup_batch = {};  ///< start, increment, samples; empty: none
  std::string sampler = "single";               ///< or cyclic, full_validation, hybrid
  std::int64_t micro_batch = 0;                 ///< cyclic only; otherwise 0
  std::int64_t ranks = 0;                       ///< cyclic only: data-parallel ranks; otherwise 0
  std::int64_t sampled = 0;                     ///< cyclic only: samples of the data; otherwise 0
  bool data_sharding = true;                    ///< cyclic only
  std::string tokenizer = {};                   ///< fingerprint of the tokenizer, as in `.meta`
  std::vector<state_source> data = {};
  std::vector<state_segment> schedule = {};  ///< empty: the weights in `data`, for the whole run
  std::vector<edit> edits = {};
  std::int64_t consumed_samples = 0;  ///< consumed by the trainer, over all ranks

  friend bool operator==(const run_state&, const run_state&) = default;
};

/// Returns the state as one line of JSON, with every option by name.
///
/// @throws config_error  a number is not finite, or a string not UTF-8.
MILLRACE_EXPORT std::string write_state(const run_state& state);

/// Checks each option by itself. The order checks what depends on the data or on other options.
///
/// @throws config_error  an option is out of range; the message names it as in the JSON.
MILLRACE_EXPORT void check(const run_state& state);

/// Parses a state that `write_state` or a person wrote. Missing options get their defaults.
///
/// @throws format_error  the text is not JSON.
/// @throws config_error  the text is not a state, or has another version; or an option is unknown,
///                       has the wrong type, or is refused by `check`.
MILLRACE_EXPORT run_state parse_state(std::string_view text);

}  // namespace millrace::dataset
