// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <millrace/dataset/state.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/loader/options.hpp>

/// The run's order provides one part of a run's state. The functions here add the rest.
namespace millrace::loader {

namespace detail {

/// Fills in the sizes of the dataset that `source` refers to.
/// @throws io_error, format_error  the dataset cannot be opened.
MILLRACE_EXPORT void describe_dataset(dataset::state_source& source);

}  // namespace detail

/// Returns the state of a run at its start, without `consumed_samples`. Opens every dataset once.
///
/// The state's tokenizer is the one in the `.meta` files. If several tokenizers are allowed, they
/// are joined with commas.
///
/// @param state  the order's part of the state (`dataset::run::description`)
/// @param end    end of the order
/// @throws io_error, format_error  a dataset cannot be opened, or as identify_sources
/// @throws config_error  datasets have several tokenizers, and the options do not allow that
MILLRACE_EXPORT dataset::run_state describe(dataset::run_state state, std::int64_t end,
                                            const loader_options& options);

}  // namespace millrace::loader
