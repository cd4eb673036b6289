// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <millrace/dataset/sampler.hpp>

#include "run_flags.hpp"

namespace millrace::inspect {

/// The sampler of a run, which applies the passes and edits of the run.
struct served_run {
  dataset::sampler ranks;
  std::int64_t end = 0;  ///< number of served samples to list
};

/// @param help  help text of the verb
/// @throws usage_error  the run with edits has no end
/// @throws config_error, io_error, format_error  as `sampler` and `edited_positions`
served_run served_run_of(const run_configuration& run, const std::string& help);

}  // namespace millrace::inspect
