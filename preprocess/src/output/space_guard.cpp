// SPDX-License-Identifier: Apache-2.0
#include "output/space_guard.hpp"

#include <cerrno>

#include <fmt/format.h>

#include <millrace/error.hpp>

namespace millrace::preprocess {
namespace {

// So much of the input, by its bytes on disk, is a sample to go by.
constexpr std::uint64_t sample_bytes = std::uint64_t{64} << 20;
// The rest may hold fewer tokens a byte than the sample: a disk that is large enough must do.
constexpr double certain_part = 0.8;

}  // namespace

void space_guard::update(committer& committer, std::uint64_t read_bytes) {
  if (done_ || read_bytes < sample_bytes) return;
  done_ = true;
  if (read_bytes >= total_bytes_) return;
  const double more = certain_part * static_cast<double>(total_bytes_ - read_bytes) /
                      static_cast<double>(read_bytes);
  const auto expected = [&](std::uint64_t so_far) {
    return static_cast<std::uint64_t>(more * static_cast<double>(so_far));
  };
  std::size_t key = 0;
  for (dataset_writer& writer : committer.writers()) {
    const dataset_state& output = committer.state().outputs[key++];
    const std::uint64_t idx_bytes = output.output_bytes() - output.bin_bytes;
    try {
      writer.reserve(expected(output.bin_bytes), expected(idx_bytes));
    } catch (const io_error& e) {
      if (e.code() != ENOSPC) throw;
      throw error(fmt::format(
          "{}: the disk has no room for what is still to come, about {} bytes; make "
          "room, then --resume",
          writer.paths().bin.string(), expected(output.bin_bytes) + expected(idx_bytes)));
    }
  }
}

}  // namespace millrace::preprocess
