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

/// Tokens that are served more or less often than nothing explains.
struct audit_fault {
  std::int64_t sequence = 0;
  std::int64_t first = 0;   ///< token of the sequence
  std::int64_t tokens = 0;  ///< they may reach into the sequences behind it
  std::int64_t times = 0;   ///< how often they were an input
  std::int64_t expected = 0;

  friend bool operator==(const audit_fault&, const audit_fault&) = default;
};

/// Tokens, and why they are not served once each.
using explained_tokens = std::pair<std::string, std::int64_t>;

/// What became of the tokens of a source in one round, an epoch or several. Tokens are counted as
/// inputs; where all that is to be replayed is:
///
///   tokens * times = served + not_in_steps + all of left_out + holes
struct audit_ledger {
  std::int64_t source = 0;
  sample_round round;       ///< of cyclic, samples are counted on from pass to pass
  std::int64_t tokens = 0;  ///< of the whole dataset

  std::int64_t samples = 0;                ///< served
  std::int64_t served = 0;                 ///< as often as they were to be
  std::int64_t not_in_steps = 0;           ///< of samples before the first step or behind the last
  std::vector<explained_tokens> left_out;  ///< by the order, then by edits or the sampler
  std::int64_t holes = 0;                  ///< missing, and nothing says why
  std::vector<explained_tokens> replayed;  ///< beside `served`: by edits
  std::int64_t repeated = 0;               ///< beside both: more often than they were to be
  std::int64_t label_only = 0;  ///< beside all: last labels, which the next window has as inputs
  std::int64_t padding = 0;     ///< beside all: tokens of no document
  std::vector<audit_fault> faults;  ///< the first of them

  bool sound() const noexcept { return holes == 0 && repeated == 0; }
};

struct audit_options {
  std::size_t most_changes = std::size_t{1} << 26;  ///< 16 bytes each, at once
  std::size_t most_faults = 16;                     ///< told of a ledger
  std::size_t most_open = 512;                      ///< indices kept open
};

/// Counts what a run serves in steps `first_step` up to but without `last_step`: every step, rank
/// and slot is walked and the tokens of its pieces are counted. What is missing is held against the
/// samples that other steps serve and those that edits or the sampler drop, walked as well, and
/// against what the run says that it leaves out; the rest is holes. What is served more often is
/// held against the samples that edits replay; the rest is repeated.
///
/// Where counts of all sources do not fit `most_changes`, the walk is repeated for each part of the
/// streams: bounded memory, more time.
///
/// @param last_step  at most sampler::end_of_whole_steps()
/// @return one of each round of each source that the steps touch, by source and first sample
/// @throws config_error  there are no such steps, or they are not served whole
/// @throws io_error, format_error  a dataset cannot be read
MILLRACE_EXPORT std::vector<audit_ledger> audit_run(const run& order, const sampler& ranks,
                                                    std::int64_t first_step, std::int64_t last_step,
                                                    const audit_options& options = {});

}  // namespace millrace::dataset
