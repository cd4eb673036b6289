// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/run/run.hpp>
#include <millrace/dataset/run/sampler.hpp>
#include <millrace/export.hpp>

namespace millrace::dataset {

/// Tokens that are served too often or not often enough, without an explanation.
struct audit_fault {
  std::int64_t sequence = 0;
  std::int64_t first = 0;   ///< offset in the sequence, in tokens
  std::int64_t tokens = 0;  ///< may extend into the following sequences
  std::int64_t times = 0;   ///< how often they were inputs
  std::int64_t expected = 0;

  friend bool operator==(const audit_fault&, const audit_fault&) = default;
};

/// The reason why tokens are not served exactly once, and their number.
using explained_tokens = std::pair<std::string, std::int64_t>;

/// An account of the tokens of a source in one round (one or more epochs). Tokens count as inputs.
/// If everything that is to be replayed is replayed:
///
///   tokens * times = served + not_in_steps + all of left_out + holes
struct audit_ledger {
  std::int64_t source = 0;
  sample_round round;       ///< cyclic continues counting samples from pass to pass
  std::int64_t tokens = 0;  ///< of the whole dataset

  std::int64_t samples = 0;                ///< served
  std::int64_t served = 0;                 ///< the expected number of times
  std::int64_t not_in_steps = 0;           ///< only in samples before or after these steps
  std::vector<explained_tokens> left_out;  ///< by the order, then by edits or the sampler
  std::int64_t holes = 0;                  ///< missing for no known reason
  std::vector<explained_tokens> replayed;  ///< in addition to `served`: by edits
  std::int64_t repeated = 0;               ///< in addition: more often than expected
  std::int64_t label_only = 0;  ///< in addition: last labels, which are inputs of the next window
  std::int64_t padding = 0;     ///< in addition: tokens of no document
  std::vector<audit_fault> faults;  ///< the first `most_faults`

  bool sound() const noexcept { return holes == 0 && repeated == 0; }
};

struct audit_options {
  std::size_t most_changes = std::size_t{1} << 26;  ///< in memory at a time, 16 bytes each
  std::size_t most_faults = 16;                     ///< reported per ledger
  std::size_t most_open = 512;                      ///< most indices that are kept open
};

/// Counts how often a run serves each token in steps [first_step, last_step), over every rank and
/// slot. Missing tokens are explained by samples of other steps, by samples that edits or the
/// sampler drop, and by what the run does not serve; the rest are holes. Tokens that are served too
/// often are explained by samples that edits replay; the rest are repeated.
///
/// If the counts of all sources exceed `most_changes`, the steps are walked once for each part of
/// the streams, which takes more time in bounded memory.
///
/// Example: check one whole pass over a run.
///
///     namespace dataset = millrace::dataset;
///     bool is_sound(const dataset::run& order, const dataset::sampler& ranks) {
///       const auto ledgers = dataset::audit_run(order, ranks, ranks.first_whole_step(),
///                                               ranks.end_of_whole_steps());
///       return std::ranges::all_of(ledgers, &dataset::audit_ledger::sound);
///     }
///
/// @param last_step  at most sampler::end_of_whole_steps()
/// @return one ledger per round of each source in these steps, sorted by source and first sample
/// @throws config_error  the steps do not exist or are not served completely
/// @throws io_error, format_error  a dataset cannot be read
MILLRACE_EXPORT std::vector<audit_ledger> audit_run(const run& order, const sampler& ranks,
                                                    std::int64_t first_step, std::int64_t last_step,
                                                    const audit_options& options = {});

}  // namespace millrace::dataset
