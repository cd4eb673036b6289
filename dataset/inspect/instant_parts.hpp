// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <millrace/dataset/detail/instant/instant_order.hpp>
#include <millrace/dataset/detail/megatron/blend_list.hpp>
#include <millrace/dataset/detail/run/batch_steps.hpp>

#include "state_flag.hpp"

namespace millrace::inspect {

/// Arguments of the constructors of `instant_run` and `packed_run`.
struct instant_parts {
  std::vector<dataset::instant_source> sources;
  dataset::instant_options options;
};

/// Returns the arguments for a run over `data`. If no weights are given, the weight of a source is
/// its number of windows. All sources then complete their epochs at the same time.
///
/// @param given  supplies the names of the sources and, if it has a schedule, their weights
/// @throws config_error  a dataset has a different length than in the state, or there are weights
///                       in addition to a schedule
/// @throws io_error, format_error  an `.idx` cannot be read
instant_parts instant_parts_of(const dataset::blend_list& data, std::int64_t seq_length,
                               std::int64_t seed, const dataset::batch_steps& steps,
                               std::optional<std::int64_t> train_samples,
                               const std::optional<given_state>& given);

}  // namespace millrace::inspect
