// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <millrace/loader/detail/io/retry_policy.hpp>

namespace millrace::loader {

class io_threads;
class open_files;

/// How a file is mapped, and what the kernel is told of it.
enum class map_advice : std::uint8_t {
  /// `resident` for the files, in their order, that fit into `resident_bytes`, else `random`.
  by_memory,
  /// Will be in memory as a whole: huge pages, and all of it read in the background.
  resident,
  /// Is read here and there: nothing is read but what `prefetch` names. Alone, without prefetch,
  /// the slowest of all.
  random,
  /// What the kernel does by itself: reads ahead and around by its own guess.
  none,
};

/// What all readers take; each uses what concerns it.
struct reader_options {
  std::shared_ptr<open_files> files{};    ///< null: the table that the process has
  std::shared_ptr<io_threads> threads{};  ///< null: the pool that the process has
  retry_policy retry{};
  /// Threads that one gather may use, the caller's included.
  int gather_threads = 8;

  map_advice advice = map_advice::by_memory;
  std::uint64_t resident_bytes = 0;  ///< for by_memory; 0: half of the memory that is available
  bool populate = true;              ///< whether resident files are read in the background

  /// For the report: who asked for which reader, and why it was chosen.
  std::string asked{};
  std::string why{};
  std::string advice_why{};  ///< of `advice`; empty: it was asked for by name
};

}  // namespace millrace::loader
