// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <millrace/loader/detail/io/retry_policy.hpp>

namespace millrace::loader {

class io_threads;
class open_files;

/// How a file is mapped, and which advice (madvise) the kernel gets.
enum class map_advice : std::uint8_t {
  /// Goes through the files in order: `resident` for each file that still fits into the rest of
  /// `resident_bytes`, else `random`.
  by_memory,
  /// The whole file will be in memory: huge pages, and a background read of all of it.
  resident,
  /// Random access: the kernel reads only ranges announced with `prefetch`. Without prefetch, this
  /// is the slowest choice.
  random,
  /// No advice: the kernel applies its own readahead.
  none,
};

/// Options of all readers; each uses those that apply to it.
struct reader_options {
  std::shared_ptr<open_files> files{};    ///< null: the table of the process
  std::shared_ptr<io_threads> threads{};  ///< null: the pool of the process
  retry_policy retry{};
  /// Threads that one gather may use, including the caller's.
  int gather_threads = 8;

  map_advice advice = map_advice::by_memory;
  std::uint64_t resident_bytes = 0;  ///< for by_memory; 0: half of the available memory
  bool populate = true;              ///< whether resident files are read in the background

  /// For the report: the back end that was requested, and why this reader was chosen.
  std::string asked{};
  std::string why{};
  std::string advice_why{};  ///< reason for `advice`; empty: requested by name
};

}  // namespace millrace::loader
