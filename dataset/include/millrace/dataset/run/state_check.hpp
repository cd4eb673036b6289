// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <millrace/dataset/run/edits.hpp>
#include <millrace/dataset/run/state.hpp>
#include <millrace/dataset/run_limits.hpp>
#include <millrace/error.hpp>

/// The body of `check` of `state.hpp`.
namespace millrace::dataset::detail {

[[noreturn]] inline void refuse_option(const std::string& place, const std::string& found,
                                       const std::string& expected) {
  throw config_error(place + " of the state is " + found + ", expected " + expected);
}

inline void check_word(const char* place, const std::string& found,
                       std::initializer_list<std::string_view> words) {
  if (std::ranges::find(words, found) != words.end()) return;
  std::string expected;
  for (const std::string_view word : words) {
    if (!expected.empty()) expected += word == *(words.end() - 1) ? " or " : ", ";
    expected += word;
  }
  refuse_option(place, '"' + found + '"', expected);
}

inline void check_count(const std::string& place, std::int64_t found, std::int64_t least = 0) {
  if (least <= found && found <= most_positions) return;
  refuse_option(place, std::to_string(found), std::to_string(least) + " to 2^62");
}

inline void check_weight(const std::string& place, double found, bool may_be_zero) {
  if (std::isfinite(found) && (found > 0 || (may_be_zero && found == 0))) return;
  refuse_option(place, std::to_string(found), may_be_zero ? "0 or more" : "a number above zero");
}

inline void check_source(const std::string& place, const state_source& source) {
  check_weight(place + "weight", source.weight, true);
  check_count(place + "tokens", source.tokens);
  check_count(place + "sequences", source.sequences);
  check_count(place + "documents", source.documents);
  check_count(place + "bin_bytes", source.bin_bytes);
  check_count(place + "idx_bytes", source.idx_bytes);
}

inline void check_segment(const std::string& place, const state_segment& segment,
                          std::size_t sources) {
  if (segment.first_step < 0 || segment.first_step > most_steps) {
    refuse_option(place + "first_step", std::to_string(segment.first_step), "0 to 2^40");
  }
  if (segment.sources.size() != segment.weights.size()) {
    throw config_error(place + "sources of the state has " +
                       std::to_string(segment.sources.size()) + " entries, but weights has " +
                       std::to_string(segment.weights.size()) + ", expected one for each");
  }
  for (const std::int64_t source : segment.sources) {
    if (0 <= source && source < static_cast<std::int64_t>(sources)) continue;
    throw config_error(place + "sources of the state names " + std::to_string(source) +
                       ", but data has " + std::to_string(sources) + ", counted from 0");
  }
  for (const double weight : segment.weights) check_weight(place + "weights", weight, false);
}

}  // namespace millrace::dataset::detail

namespace millrace::dataset {

inline void check(const run_state& state) {
  detail::check_word("order", state.order, {"instant", "megatron", "stored"});
  detail::check_word("packing", state.packing, {"none", "best_fit"});
  detail::check_word("split_part", state.split_part, {"train", "valid", "test"});
  detail::check_word("blend_rounding", state.blend_rounding, {"twice", "fused"});
  detail::check_word("sampler", state.sampler, {"single", "cyclic", "full_validation", "hybrid"});
  detail::check_count("seq_len", state.seq_len);  // 0, here and below: not said
  detail::check_count("global_batch", state.global_batch);
  detail::check_count("micro_batch", state.micro_batch);
  detail::check_count("ranks", state.ranks);
  detail::check_count("sampled", state.sampled);
  detail::check_count("pad_documents_to", state.pad_documents_to, 1);
  detail::check_count("consumed_samples", state.consumed_samples);
  if (!std::isfinite(state.surplus) || state.surplus < 0) {
    detail::refuse_option("surplus", std::to_string(state.surplus), "0 or more");
  }
  if (state.samples.size() > 3) {
    detail::refuse_option("samples", "a list of " + std::to_string(state.samples.size()),
                          "those of train, valid and test");
  }
  for (const std::int64_t samples : state.samples) detail::check_count("samples", samples, -1);
  if (!state.rampup_batch.empty() && state.rampup_batch.size() != 3) {
    detail::refuse_option("rampup_batch", "a list of " + std::to_string(state.rampup_batch.size()),
                          "start, increment and samples, or none");
  }
  for (const std::int64_t number : state.rampup_batch) detail::check_count("rampup_batch", number);
  for (std::size_t i = 0; i < state.data.size(); ++i) {
    detail::check_source("data[" + std::to_string(i) + "].", state.data[i]);
  }
  for (std::size_t i = 0; i < state.schedule.size(); ++i) {
    detail::check_segment("schedule[" + std::to_string(i) + "].", state.schedule[i],
                          state.data.size());
  }
  for (std::size_t i = 0; i < state.edits.size(); ++i) check(state.edits[i], i);
}

}  // namespace millrace::dataset
