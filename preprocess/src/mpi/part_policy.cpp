// SPDX-License-Identifier: Apache-2.0
#include "mpi/part_policy.hpp"

#include <cstdint>
#include <string>

#include <millrace/io/atomic_file.hpp>

#include "run/run_meta.hpp"

namespace millrace::preprocess {
namespace {

std::int64_t bad_records_of(const formats::dataset_meta& meta) {
  std::int64_t sum = 0;
  for (const auto& [kind, count] : meta.counts.bad_records) sum += count;
  return sum;
}

}  // namespace

std::optional<bad_record_policy> other_policy(std::span<const std::filesystem::path> prefixes,
                                              const tokenizer::tokenizer& tokenizer,
                                              const encoder_options& encoding,
                                              const run_options& task) {
  for (const auto policy : {bad_record_policy::fail, bad_record_policy::skip}) {
    if (policy == task.on_bad_record) continue;
    run_options other = task;
    other.on_bad_record = policy;
    const auto done = finished_outputs(prefixes, tokenizer, encoding, other);
    if (done && bad_records_of(done->front()) == 0) return policy;
  }
  return std::nullopt;
}

void adopt_policy(std::span<const std::filesystem::path> prefixes, bad_record_policy policy) {
  const std::string told = name_of(policy);
  for (const auto& prefix : prefixes) {
    formats::dataset_meta meta = read_metas(std::span(&prefix, 1)).front();
    if (meta.on_bad_record == told || bad_records_of(meta) != 0) continue;
    meta.on_bad_record = told;
    const std::string json = to_json(meta);
    io::atomic_file file(dataset_paths(prefix).of(sidecar::meta));
    file.append(std::as_bytes(std::span(json)));
    file.commit();
  }
}

}  // namespace millrace::preprocess
