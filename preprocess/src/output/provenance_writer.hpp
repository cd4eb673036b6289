// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <millrace/formats/detail/src_encoder.hpp>
#include <millrace/io/atomic_file.hpp>

namespace millrace::preprocess {

/// Writes a `.src` file (formats/spec/src.md) while documents arrive. The payload is written to its
/// final place. The directory, a table that follows the payload, is first written to a separate
/// file. Not thread-safe.
class provenance_writer {
 public:
  using state = formats::src_encoder::state;

  /// If `how` is `afresh`, starts a new file; in this case, `from` must be `state{}`. Otherwise,
  /// resumes the file from the state `from`.
  provenance_writer(const std::filesystem::path& path, io::atomic_file::start how,
                    const state& from = {});

  void append(std::span<const formats::source_place> places);
  const state& save() const noexcept { return encoder_.save(); }

  /// Completes the file, under its partial name.
  ///
  /// @param inputs  all inputs
  void finish(std::span<const formats::src_input> inputs);

  io::atomic_file& file() noexcept { return file_; }
  io::atomic_file& directory() noexcept { return directory_; }

 private:
  io::atomic_file file_;
  io::atomic_file directory_;
  formats::src_encoder encoder_;
  std::vector<std::byte> payload_part_;  // a member only to reuse its memory
  std::vector<std::byte> directory_part_;
};

}  // namespace millrace::preprocess
