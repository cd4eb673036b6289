// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <boost/program_options.hpp>

#include "record/fim_options.hpp"

namespace millrace::preprocess {

/// The flags for `--help fim`.
boost::program_options::options_description fim_group();

/// Returns the flags that were given; nothing without `--fim-rate`.
///
/// @throws command::usage_error  a flag is invalid, was given without `--fim-rate`, or contradicts
///                               another flag.
std::optional<fim_options> fim_options_of(const boost::program_options::variables_map& given);

}  // namespace millrace::preprocess
