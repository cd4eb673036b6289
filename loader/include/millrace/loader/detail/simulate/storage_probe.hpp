// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include <millrace/detail/export.hpp>
#include <millrace/formats/dtype.hpp>
#include <millrace/loader/cluster_plan.hpp>
#include <millrace/loader/options.hpp>

namespace millrace::loader {

/// How a run would use the storage of a folder.
struct probe_options {
  /// The options of the loader: `batch_size`, `look_ahead`, `threads`, `prefetch_samples`, `io`.
  loader_options loader;
  std::int64_t seq_len = 4096;
  formats::dtype type = formats::dtype::uint16;
  std::int64_t document_tokens = 1000;  ///< length of each document of the made dataset
  std::int64_t loaders = 1;             ///< number of loaders that read at the same time
  /// The data of the run, and the memory that its machine can give to the page cache; 0: unknown.
  /// Unless `loader.io` names a reader, they choose it.
  std::uint64_t data_bytes = 0;
  std::int64_t data_files = 1;
  std::uint64_t available_memory = 0;
  std::chrono::duration<double> time{10};               ///< of the whole probe, about
  std::uint64_t most_bytes = std::uint64_t{4} << 30;    ///< largest size of the made data
  std::function<void(const char* what)> progress = {};  ///< called before each part of the probe
  /// Asked often, by one thread at a time or by several. If it returns true, the probe removes its
  /// files and throws. It must be thread-safe.
  std::function<bool()> should_stop = {};
};

/// What a probe found.
struct storage_probe {
  loader_speed speed;
  std::uint64_t bytes = 0;            ///< size of the made data
  double write_bytes_per_second = 0;  ///< including the time to reach the disk
  std::string reader;                 ///< name of the reader that the loader used
  /// False if the kernel kept the data in memory, as on tmpfs. Then `cold_s` is no time of a disk.
  bool was_cold = true;
};

/// Measures how fast loaders serve micro-batches from a folder: writes a dataset of random tokens
/// there, serves it in the order `instant`, first from storage and then from the page cache, and
/// removes it. The dataset takes at most a quarter of the free space.
///
/// @throws config_error  the folder is missing or has no space for 64 micro-batches
/// @throws io_error      a file cannot be written or read
/// @throws error         `should_stop` returned true
MILLRACE_EXPORT storage_probe probe_storage(const std::filesystem::path& folder,
                                            const probe_options& options);

}  // namespace millrace::loader
