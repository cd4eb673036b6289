// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/program_options.hpp>

#include <millrace/dataset/detail/megatron/blend_plan.hpp>
#include <millrace/dataset/detail/megatron/data_flags.hpp>
#include <millrace/dataset/detail/megatron/split.hpp>

#include "command_line.hpp"

/// Megatron's data flags: datasets, blend, split, and numbers of samples.
namespace millrace::inspect {

void add_data_options(boost::program_options::options_description& own);

/// @throws config_error  as `dataset::set_data_flag`
dataset::data_flags data_flags_of(const command_line& line);

/// Calls `suggest_dataset` for every prefix of the data.
/// @throws config_error  as `suggest_dataset`
void suggest_datasets(const dataset::data_blends& data);

/// The values of `--train-samples`, `--valid-samples` and `--test-samples`; nullopt for a part
/// whose flag was not given.
/// @throws usage_error  a value is negative
dataset::part_sizes part_sizes_of(const command_line& line, const std::string& help);

/// The name of a part's flag, without the dashes: "train-samples" and so on.
const char* samples_flag(dataset::split_part part);

}  // namespace millrace::inspect
