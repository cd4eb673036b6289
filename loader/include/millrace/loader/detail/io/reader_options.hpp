// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <millrace/loader/detail/io/retry_policy.hpp>

namespace millrace::loader {

class io_threads;
class open_files;

/// Which advice (madvise) the kernel gets for the memory mappings of a file.
enum class map_advice : std::uint8_t {
  /// Chooses for each file, in the order of the files. A file gets `resident` if it still fits into
  /// what earlier files left of `resident_bytes`, otherwise `random`.
  by_memory,
  /// The whole file will be in memory. It gets huge pages, and is read in the background.
  resident,
  /// Random access: the kernel reads only ranges announced with `prefetch`. Without prefetch, this
  /// is the slowest choice.
  random,
  /// No advice: the kernel applies its own readahead.
  none,
};

/// Options of all readers. Each reader uses only the options that apply to it.
struct reader_options {
  std::shared_ptr<open_files> files{};    ///< table of open files; null: `open_files::of_process`
  std::shared_ptr<io_threads> threads{};  ///< thread pool; null: `io_threads::of_process`
  retry_policy retry{};
  /// Number of threads that one gather may use, including the calling thread.
  int gather_threads = 8;

  map_advice advice = map_advice::by_memory;
  std::uint64_t resident_bytes = 0;  ///< for by_memory; 0: half of the available memory
  bool populate = true;              ///< whether resident files are read in the background

  // Texts for the report.
  std::string asked{};       ///< the requested back end; empty: the reader's own name
  std::string why{};         ///< why this reader was chosen; empty: requested by name
  std::string advice_why{};  ///< why `advice` was chosen; empty: requested by name
};

}  // namespace millrace::loader
