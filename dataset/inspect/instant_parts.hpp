// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <millrace/dataset/detail/instant/instant_order.hpp>
#include <millrace/dataset/detail/megatron/blend_list.hpp>
#include <millrace/dataset/detail/run/batch_steps.hpp>
#include <millrace/dataset/packed_run.hpp>

#include "state_flag.hpp"

namespace millrace::inspect {

/// What the orders instant and packed are made of.
struct instant_parts {
  std::vector<dataset::instant_source> sources;
  dataset::instant_options options;
};

/// Without weights, sources count by their windows, so that all end their epochs together.
///
/// @param given  says the names of the sources, and their weights where it has a schedule
/// @throws config_error  a dataset is not as long as the state's of that name, or there are weights
///                       beside a schedule
/// @throws io_error, format_error  an `.idx` cannot be read
instant_parts instant_parts_of(const dataset::blend_list& data, std::int64_t seq_length,
                               std::int64_t seed, const dataset::batch_steps& steps,
                               std::optional<std::int64_t> train_samples,
                               const std::optional<given_state>& given);

/// Nothing is written beside the datasets.
///
/// @param reweighted  sources count by their rows
/// @throws config_error, io_error, format_error  as dataset::packed_run
dataset::packed_run packed_of(instant_parts parts, bool reweighted, std::int64_t pad_documents_to);

}  // namespace millrace::inspect
