// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "unit/dataset/run/stored_run.hpp"
#include "unit/loader/served_rows.hpp"

/// Builds small runs of every kind over datasets of random documents.
namespace millrace::test {

enum class run_kind { megatron, instant, packed };

struct run_request {
  run_kind kind = run_kind::instant;
  bool blend = false;
  std::int64_t seq_len = 16;
  std::int64_t samples = 96;
  std::int64_t global_batch = 8;
  std::int64_t pad_documents_to = 1;
  bool last_token_as_label = false;  ///< packed runs only
};

inline const char* name_of(run_kind kind) {
  constexpr const char* names[] = {"megatron", "instant", "packed"};
  return names[static_cast<int>(kind)];
}

/// Writes three datasets, `a`, `b` and `c`, and returns their prefixes.
inline std::vector<std::filesystem::path> store_three(const temp_folder& folder,
                                                      std::uint64_t seed) {
  std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
  return {store_documents(folder / "a", random, 60), store_documents(folder / "b", random, 90),
          store_documents(folder / "c", random, 40)};
}

inline any_run run_of(const run_request& request, std::vector<std::filesystem::path> prefixes) {
  if (!request.blend) prefixes.resize(1);
  if (request.kind == run_kind::megatron) {
    return megatron_run_of(prefixes, request.seq_len, "90,7,3", request.samples);
  }
  dataset::instant_options options;
  options.seq_len = request.seq_len;
  options.segments.push_back({0, {}});
  options.first_position_of = [g = request.global_batch](std::int64_t step) { return step * g; };
  options.train_samples = request.samples;
  std::vector<dataset::instant_source> sources;
  for (const auto& prefix : prefixes) {
    sources.push_back({prefix, "", {}, {}});
    const auto number = static_cast<std::int64_t>(sources.size());
    options.segments[0].sources.push_back({number - 1, static_cast<double>(number)});
  }
  if (request.kind == run_kind::instant) return dataset::instant_run(sources, options);
  dataset::packed_options packing{.pad_documents_to = request.pad_documents_to};
  if (request.last_token_as_label) {
    packing.algorithm = dataset::packing_algorithm::first_fit_shuffle;
    packing.leave_out_overlong = packing.last_token_as_label = true;
  }
  return dataset::packed_run(sources, options, packing);
}

}  // namespace millrace::test
