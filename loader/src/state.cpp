// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/state.hpp>

#include <cstdint>

#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/loader/detail/verify/source_identity.hpp>
#include <millrace/loader/options.hpp>

namespace millrace::loader {

namespace detail {

MILLRACE_INLINE void describe_dataset(dataset::state_source& source) {
  const dataset::index_columns columns(source.prefix, dataset::index_access::pread);
  source.tokens = columns.token_count();
  source.sequences = columns.sequence_count();
  source.documents = columns.document_count();
  source.bin_bytes = source.tokens * static_cast<std::int64_t>(formats::size_bytes(columns.type()));
  const auto& idx = columns.idx_path();
  source.idx_bytes = static_cast<std::int64_t>(io::regular_file_size(io::open_read_only(idx), idx));
}

}  // namespace detail

MILLRACE_INLINE dataset::run_state describe(dataset::run_state state, std::int64_t end,
                                            const loader_options& options) {
  for (dataset::state_source& source : state.data) detail::describe_dataset(source);
  (void)identify_sources(state, options.allow_several_tokenizers);
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
    state.sampled = end;
    state.data_sharding = options.data_sharding;
  }
  state.edits = options.edits;
  return state;
}

}  // namespace millrace::loader
