// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <millrace/formats/sum.hpp>
#include <millrace/io/atomic_file.hpp>

#include "process/stop_flag.hpp"

namespace millrace::preprocess {

/// Returns the size in bytes of a `.sum` file, given the sizes of its `.bin` and `.idx`.
constexpr std::uint64_t sum_bytes(std::uint64_t bin_bytes, std::uint64_t idx_bytes) noexcept {
  return formats::sum_header_bytes + formats::sum_root_bytes +
         4 * (formats::sum_block_count(bin_bytes) + formats::sum_block_count(idx_bytes));
}

/// Completes a `.sum` file that already contains all checksums: writes its header and appends its
/// root.
///
/// @param version  of the format, which tells what the checksums prove (formats/spec/sum.md)
/// @return the root, in hexadecimal
std::string complete_sum(io::atomic_file& sum, std::uint64_t bin_bytes, std::uint64_t idx_bytes,
                         std::uint32_t version);

/// Writes a `.sum` while the `.bin` is being written (formats/spec/sum.md). Not thread-safe.
class checksum_writer {
 public:
  using state = formats::block_checksums::state;

  /// If `how` is `afresh`, starts a new file; in this case, `from` must be `state{}`. Otherwise,
  /// resumes the file from the state `from`.
  checksum_writer(const std::filesystem::path& path, io::atomic_file::start how,
                  const state& from = {});

  /// Adds the next bytes of the `.bin`.
  void add(std::span<const std::byte> bytes);
  const state& save() const noexcept { return bin_.save(); }

  /// Discards the bytes that were added after the state `to` was saved.
  void go_back(const state& to);

  /// Adds the checksums of the finished `.idx` and completes the `.sum` under its partial name.
  ///
  /// @return the root, in hexadecimal
  /// @throws stopped  `stop` is set.
  std::string finish(const io::atomic_file& idx, std::uint32_t version = formats::sum_version,
                     const stop_flag& stop = {});

  io::atomic_file& file() noexcept { return file_; }

 private:
  void append();

  io::atomic_file file_;
  formats::block_checksums bin_;
  std::vector<std::uint32_t> completed_;  // a member only to reuse its memory
};

}  // namespace millrace::preprocess
