// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <millrace/dataset/run/state.hpp>
#include <millrace/export.hpp>
#include <millrace/loader/options.hpp>

/// What a loader puts into the state of its run (orders.md 7), beside what the order says of
/// itself.
namespace millrace::loader {

namespace detail {

/// Sizes of a dataset, into what names it already.
/// @throws io_error, format_error  it cannot be opened.
MILLRACE_EXPORT void describe_dataset(dataset::state_source& source);

}  // namespace detail

/// The state of a run at its start: all but `consumed_samples`. Opens every dataset once.
///
/// The tokenizer is that of the `.meta` files; where they may be several, all of them, with commas.
///
/// @param state  what the order says of itself (`dataset::run::description`)
/// @param end    of the order
/// @throws io_error, format_error  a dataset cannot be opened, or as identify_sources
/// @throws config_error  datasets are of several tokenizers, which the options do not allow
MILLRACE_EXPORT dataset::run_state describe(dataset::run_state state, std::int64_t end,
                                            const loader_options& options);

}  // namespace millrace::loader
