// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <millrace/loader/io/reader_report.hpp>
#include <millrace/loader/memory/grant.hpp>
#include <millrace/loader/telemetry/telemetry_report.hpp>
#include <millrace/loader/verify/verify_report.hpp>

namespace millrace::loader {

/// What a loader says of itself: `batch_loader::observe`.
struct loader_report {
  telemetry_report times;              ///< since it started or went on from a state
  std::vector<reader_report> readers;  ///< what is asked of files, one of each filling thread
  std::vector<grant> threads;          ///< where the filling threads run, and why not where
                                       ///< `loader_options::cpus` asked them to
  std::optional<verify_report> verification;  ///< nothing where checksums are not looked at
};

}  // namespace millrace::loader
