// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <millrace/dataset/instant_run.hpp>
#include <millrace/dataset/megatron_run.hpp>
#include <millrace/dataset/packed_run.hpp>

#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::test {

/// Writes documents of 0 to 3 sequences, each with 0 to 25 tokens. Token n of the dataset has the
/// value n.
inline std::filesystem::path store_documents(const std::filesystem::path& prefix,
                                             std::mt19937& random, int count) {
  documents_of<std::uint16_t> documents;
  std::uint16_t next = 0;
  for (int d = 0; d < count; ++d) {
    auto& document = documents.emplace_back();
    for (auto s = random() % 4; s > 0; --s) {
      auto& sequence = document.emplace_back();
      for (auto t = random() % 26; t > 0; --t) sequence.push_back(next++);
    }
  }
  documents.push_back({{next, ++next, ++next, ++next}});
  write_dataset<std::uint16_t>(prefix, documents);
  return prefix;
}

/// Returns the run that `--data-path` gives for these prefixes. Several prefixes make a blend with
/// the weights 1, 2, 3 etc.
inline dataset::megatron_run megatron_run_of(const std::vector<std::filesystem::path>& prefixes,
                                             std::int64_t seq_len, const std::string& split,
                                             std::optional<std::int64_t> train_samples) {
  dataset::data_blends blends;
  blends.split = split;
  blends.surplus = 0.5;
  blends.blend.emplace();
  for (const auto& prefix : prefixes) {
    blends.blend->prefixes.push_back(prefix.string());
    const auto weight = static_cast<double>(blends.blend->prefixes.size());
    if (prefixes.size() > 1) blends.blend->weights.push_back(weight);
  }
  const auto plan = dataset::plan_data(blends, {train_samples, 0, 0});
  return dataset::megatron_run::build(
      *plan[0], {.sequence_length = seq_len, .part = dataset::split_part::train}, split);
}

namespace detail {

template <class Run, class... More>
Run run_of(const std::vector<std::filesystem::path>& prefixes, std::int64_t seq_len,
           std::int64_t global_batch_size, std::optional<std::int64_t> train_samples,
           const More&... more) {
  dataset::instant_options options;
  options.seq_len = seq_len;
  options.segments.push_back({0, {}});
  options.first_position_of = [=](std::int64_t step) { return step * global_batch_size; };
  options.train_samples = train_samples;
  std::vector<dataset::instant_source> sources;
  for (const auto& prefix : prefixes) {
    sources.push_back({prefix, "", {}, {}});
    const auto number = static_cast<std::int64_t>(sources.size());
    options.segments[0].sources.push_back({number - 1, static_cast<double>(number)});
  }
  return Run(sources, options, more...);
}

}  // namespace detail

inline dataset::instant_run instant_run_of(const std::vector<std::filesystem::path>& prefixes,
                                           std::int64_t seq_len, std::int64_t global_batch_size,
                                           std::optional<std::int64_t> train_samples) {
  return detail::run_of<dataset::instant_run>(prefixes, seq_len, global_batch_size, train_samples);
}

inline dataset::packed_run packed_run_of(
    const std::vector<std::filesystem::path>& prefixes, std::int64_t seq_len,
    std::int64_t global_batch_size, std::optional<std::int64_t> train_samples,
    std::int64_t pad_documents_to = 1,
    dataset::packing_algorithm algorithm = dataset::packing_algorithm::best_fit) {
  return detail::run_of<dataset::packed_run>(
      prefixes, seq_len, global_batch_size, train_samples,
      dataset::packed_options{
          .pad_documents_to = pad_documents_to,
          .threads = 1,
          .keep_tables = false,
          .algorithm = algorithm,
          .leave_out_overlong = algorithm != dataset::packing_algorithm::best_fit});
}

}  // namespace millrace::test
