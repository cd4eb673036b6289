// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>

#include <millrace/dataset/instant/index_columns.hpp>
#include <millrace/dataset/run/state.hpp>
#include <millrace/dataset/sidecar_paths.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/hex.hpp>
#include <millrace/formats/json.hpp>
#include <millrace/formats/sum.hpp>
#include <millrace/io/file_ops.hpp>
#include <millrace/loader/options.hpp>
#include <millrace/loader/plan/sample_plan.hpp>

/// What a loader puts into the state of its run (orders.md 7), beside what the order says of
/// itself.
namespace millrace::loader {

namespace detail {

/// Sizes and root of a dataset, into what names it already.
/// @throws io_error, format_error  it cannot be opened.
inline void describe_dataset(dataset::state_source& source) {
  const dataset::index_columns columns(source.prefix, dataset::index_access::pread);
  source.tokens = columns.token_count();
  source.sequences = columns.sequence_count();
  source.documents = columns.document_count();
  source.bin_bytes = source.tokens * static_cast<std::int64_t>(formats::size_bytes(columns.type()));
  source.idx_bytes = static_cast<std::int64_t>(std::filesystem::file_size(columns.idx_path()));
  try {
    const auto file = dataset::map_sidecar(dataset::sidecar_paths(source.prefix).sum);
    if (!file) return;
    const formats::sum_view sum = formats::parse_sum(file->bytes());
    const bool fits = static_cast<std::int64_t>(sum.bin_bytes) == source.bin_bytes &&
                      static_cast<std::int64_t>(sum.idx_bytes) == source.idx_bytes;
    if (fits) source.root = formats::hex(sum.root);
  } catch (const error&) {
    // A broken .sum is what verify finds; sizes say enough here.
  }
}

/// The fingerprint of the tokenizer that `P.meta` names; empty where there is none.
inline std::string tokenizer_of(const std::filesystem::path& prefix) {
  try {
    const auto file = dataset::map_sidecar(dataset::sidecar_paths(prefix).meta);
    if (!file) return {};
    const auto bytes = file->bytes();
    const formats::json_value meta = formats::parse_json(
        std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    const formats::json_value* tokenizer = meta.find("tokenizer");
    const formats::json_value* fingerprint =
        tokenizer == nullptr ? nullptr : tokenizer->find("fingerprint");
    const std::string* text = fingerprint == nullptr ? nullptr : fingerprint->as<std::string>();
    return text == nullptr ? std::string() : *text;
  } catch (const error&) {
    return {};
  }
}

}  // namespace detail

/// The state of a run at its start: all but `consumed_samples`. Opens every dataset once.
///
/// The tokenizer is that of the `.meta` files; where they name several, all of them, with commas.
///
/// @throws io_error, format_error  a dataset cannot be opened.
inline dataset::run_state describe(const sample_plan& plan, const loader_options& options) {
  dataset::run_state state = plan.description();
  for (dataset::state_source& source : state.data) {
    detail::describe_dataset(source);
    const std::string tokenizer = detail::tokenizer_of(source.prefix);
    if (tokenizer.empty() || state.tokenizer.find(tokenizer) != std::string::npos) continue;
    state.tokenizer += (state.tokenizer.empty() ? "" : ",") + tokenizer;
  }
  state.global_batch = options.samples_of_step();
  if (options.rampup) {
    state.rampup_batch = {options.rampup->start, options.rampup->increment,
                          options.rampup->samples};
  }
  if (options.sampler == sampler_type::full_validation) state.sampler = "full_validation";
  if (options.sampler == sampler_type::cyclic) {
    state.sampler = "cyclic";
    state.micro_batch = options.batch_size;
    state.ranks = options.world_size;
    state.sampled = plan.end();
    state.data_sharding = options.data_sharding;
  }
  state.edits = options.edits;
  return state;
}

}  // namespace millrace::loader
