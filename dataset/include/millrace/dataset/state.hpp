// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/detail/export.hpp>

// Example:
//
//     // Skips the samples of a loss spike, in a state that was saved with a checkpoint.
//     std::ifstream file("state.json");
//     const std::string text(std::istreambuf_iterator<char>(file), {});
//     auto state = millrace::dataset::parse_state(text);
//     millrace::dataset::edit skip;
//     skip.first = 1'000'000;
//     skip.last = 1'000'512;
//     skip.since = state.consumed_samples;
//     skip.why = "loss spike at step 1953";
//     state.edits.push_back(skip);
//     std::ofstream("state.json") << write_state(state);

namespace millrace::dataset {

enum class edit_kind : std::uint8_t {
  skip,    ///< never served from now on
  replay,  ///< served again
  block,   ///< every sample that contains one of these documents is skipped
};

enum class edit_unit : std::uint8_t { samples, steps, documents };

/// A change to what a run serves. Ranges refer to the run without edits: position 1000 is the same
/// sample regardless of what was skipped before it, and step 10 starts at position 10 *
/// global_batch (without a ramp-up).
struct edit {
  edit_kind kind = edit_kind::skip;
  edit_unit unit = edit_unit::samples;  ///< `documents` if and only if the kind is `block`
  std::int64_t first = 0;               ///< first sample, step or document
  std::int64_t last = 0;                ///< end, exclusive
  /// `replay` only: the sample or step before which the range is served again; at least `last`.
  std::int64_t at = 0;
  std::int64_t since = 0;  ///< samples served before the edit was made; they do not change
  /// `block` only: prefix of the dataset that has the documents, as in the run.
  std::string source = {};
  std::string why = {};  ///< reason, free text; not empty

  friend bool operator==(const edit&, const edit&) = default;
};

/// Samples `first` to `last - 1`.
struct position_range {
  std::int64_t first = 0;
  std::int64_t last = 0;
  friend bool operator==(const position_range&, const position_range&) = default;
};

/// The name of an edit in a state: "skip_samples", "replay_steps", "block_documents", etc.
inline std::string name_of(const edit& e) {
  constexpr const char* kinds[] = {"skip", "replay", "block"};
  constexpr const char* units[] = {"samples", "steps", "documents"};
  return std::string(kinds[static_cast<int>(e.kind)]) + '_' + units[static_cast<int>(e.unit)];
}

/// @throws config_error  the edit is inconsistent; the message contains `number`, the edit's index.
MILLRACE_EXPORT void check(const edit& e, std::size_t number);

/// Identifies a dataset of a run.
struct state_source {
  std::string prefix = {};  ///< path without `.bin` and `.idx`; may change
  double weight = 1;        ///< in the blend, if there is no schedule and weights are used
  std::int64_t tokens = 0;
  std::int64_t sequences = 0;
  std::int64_t documents = 0;
  std::int64_t bin_bytes = 0;
  std::int64_t idx_bytes = 0;
  std::string root = {};  ///< root of the `.sum`, 64 hexadecimal digits; empty if there is none

  /// In the order `instant`, the shuffle of the dataset depends on this name. Empty: the file name
  /// of `prefix`.
  std::string name = {};

  friend bool operator==(const state_source&, const state_source&) = default;
};

/// The blend from `first_step` until the next segment begins.
struct state_segment {
  std::int64_t first_step = 0;
  std::vector<std::int64_t> sources = {};  ///< indices into `data`
  std::vector<double> weights = {};        ///< one per source

  friend bool operator==(const state_segment&, const state_segment&) = default;
};

/// The position of a run and every option that determines the next samples: save it with each
/// checkpoint. The state is the same on every rank and with any number of workers. Unless the
/// sampler is `cyclic`, the state does not depend on the number of ranks or the micro-batch size
/// either.
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
  std::string order = "instant";  ///< or "megatron", or "stored" (one dataset in stored order)
  std::uint64_t seed = 1234;      ///< the order `instant` uses all 64 bits, `megatron` uses 32
  std::int64_t seq_len = 0;
  bool extra_token = true;
  bool last_token_as_label = false;  ///< packed rows only, see `packed_options`
  std::string packing = "none";      ///< or a name of `packing_algorithm_names`
  std::int64_t pad_documents_to = 1;
  std::string split = {};                  ///< as given, e.g. "969, 30, 1"; empty: no split
  std::string split_part = "train";        ///< or "valid" or "test"
  std::vector<std::int64_t> samples = {};  ///< requested for train, valid and test; -1: one epoch.
                                           ///< They affect only the order `megatron`
  double surplus = 0.005;                  ///< mid_level_dataset_surplus
  /// Order `megatron` only: true if the datasets have weights. Otherwise, they are blended by
  /// length if a number of samples is requested. If no number is requested, each sample is served
  /// once.
  bool weighted = true;
  /// Blends of the order `megatron` only: "twice" or "fused" (see `blend_rounding`).
  std::string blend_rounding = "twice";
  bool drop_last_partial_sequence = true;  ///< drop_last_partial_validation_sequence
  std::int64_t global_batch = 0;
  std::vector<std::int64_t> rampup_batch = {};  ///< start, increment, samples; empty: none
  std::string sampler = "single";               ///< or "cyclic", "full_validation" or "hybrid"
  std::int64_t micro_batch = 0;                 ///< cyclic only; otherwise 0
  std::int64_t ranks = 0;                       ///< cyclic only: data-parallel ranks; otherwise 0
  std::int64_t sampled = 0;                     ///< cyclic only: samples in the order; otherwise 0
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
/// @throws config_error  a number is not finite, or a string is not UTF-8.
MILLRACE_EXPORT std::string write_state(const run_state& state);

/// Checks each option on its own. Whatever depends on the data or on other options is checked when
/// the order is created.
///
/// @throws config_error  an option is out of range; the message names the option as in the JSON.
MILLRACE_EXPORT void check(const run_state& state);

/// Parses a state that `write_state` or a person wrote. Missing options get their defaults.
///
/// @throws format_error  the text is not JSON or not a state, or has another version; or an option
///                       is unknown, has the wrong type, or is refused by `check`. The offset is
///                       the byte of the option's name, or of the element in a list.
MILLRACE_EXPORT run_state parse_state(std::string_view text);

class edited_stream;

/// Differences that are allowed between a saved state and the run that resumes from it.
struct resume_terms {
  /// Options that may differ, by their names in the state: "seed", "data", "edits" etc. Future
  /// samples use the new value.
  std::vector<std::string> allow = {};
  /// Number of steps that the saved run has begun. With edits, these are all steps up to the step
  /// that contains the largest position served so far. Segments of a schedule that begin in one of
  /// these steps must not change. Required with a batch-size ramp-up. Otherwise it is computed from
  /// consumed_samples and, with edits, from saved_stream.
  std::optional<std::int64_t> steps_done = {};
  /// If edits were added: the stream with the saved edits and the stream with the new edits. Both
  /// must serve the same first consumed_samples samples. If they are not given, the `since` of each
  /// added edit must be at least consumed_samples.
  const edited_stream* saved_stream = nullptr;
  const edited_stream* new_stream = nullptr;
};

/// Checks that a run can resume from a saved state, so that it serves every sample as the saved run
/// would have served it.
/// - Every option must be the same. `samples` and `weighted` are compared only for the order
///   `megatron`, which depends on them. `blend_rounding` is compared only for blends of that order.
/// - Two datasets are the same if their roots are equal. If one of them has no root, their sizes
///   are compared instead. Their paths may differ. Their names may differ only for the order
///   `megatron`, because the order `instant` depends on names.
/// - A schedule may change from the first step that has not begun, and may then have more datasets.
/// - Edits may be appended if the samples that were served stay the same. Saved edits must not be
///   removed, even if they concern only future samples.
/// - With the `cyclic` sampler, the number of ranks and the micro-batch size may change only at the
///   end of an epoch: consumed_samples must be a multiple of the samples per epoch, both with the
///   old and with the new values.
///
/// Example: resume with another seed.
///
///     void resume(const millrace::dataset::run_state& saved,
///                 const millrace::dataset::run_state& now) {
///       millrace::dataset::require_same(saved, now, {.allow = {"seed"}});
///     }
///
/// @throws config_error  `saved` and `now` differ; the message names the first difference and both
///                       values. Or a name in `allow` is not the name of an option.
MILLRACE_EXPORT void require_same(const run_state& saved, const run_state& now,
                                  const resume_terms& terms = {});

/// A field in which two states differ.
struct state_difference {
  std::string field;  ///< name in the JSON, e.g. "seed" or "data[1].tokens"
  std::string a;      ///< value as JSON; empty: this state does not have the field
  std::string b;

  friend bool operator==(const state_difference&, const state_difference&) = default;
};

/// Returns all fields in which two states differ, in the order of the JSON. In lists, entries with
/// the same index are compared.
///
/// Example: print them.
///
///     void print(const millrace::dataset::run_state& a, const millrace::dataset::run_state& b) {
///       for (const auto& each : millrace::dataset::diff_states(a, b)) {
///         std::cout << each.field << ": " << each.a << " and " << each.b << '\n';
///       }
///     }
///
/// @throws config_error  as `write_state`
MILLRACE_EXPORT std::vector<state_difference> diff_states(const run_state& a, const run_state& b);

}  // namespace millrace::dataset
