// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <millrace/loader/detail/io/reader_report.hpp>
#include <millrace/loader/detail/memory/grant.hpp>
#include <millrace/loader/detail/telemetry/telemetry_report.hpp>
#include <millrace/loader/detail/verify/verify_report.hpp>

// Example:
//
//     const auto print_threads = [](const millrace::loader::batch_loader& loader) {
//       const millrace::loader::loader_report report = loader.observe();
//       std::cout << report.threads.size() << " threads\n";
//     };

namespace millrace::loader {

/// The result of `batch_loader::observe`.
///
///     const millrace::loader::loader_report report = loader.observe();
///     std::cerr << text_of(report.times) << '\n';
struct loader_report {
  telemetry_report times;                     ///< since the loader started or resumed
  std::vector<reader_report> readers;         ///< one per thread that fills slots
  std::vector<grant> threads;                 ///< CPUs of the threads that fill slots, and the
                                              ///< reason if these are not the requested CPUs
  std::optional<verify_report> verification;  ///< empty if checksums are not checked
};

}  // namespace millrace::loader
