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
  const auto reserve = [](dataset_writer& writer, std::uint64_t bin_bytes,
                          std::uint64_t idx_bytes) {
    try {
      writer.reserve(bin_bytes, idx_bytes);
    } catch (const io_error& e) {
      if (e.code() != ENOSPC) throw;
      throw error(
          fmt::format("{}: the disk has no room for what is still to come, about {} bytes; make "
                      "room, then --resume",
                      writer.paths().bin.string(), bin_bytes + idx_bytes));
    }
  };
  dataset_outputs& outputs = committer.outputs();
  const std::size_t partitions = outputs.parts().size() / outputs.wholes().size();
  auto part = outputs.parts().begin();
  for (dataset_writer& whole : outputs.wholes()) {
    if (partitions == 0) {
      const dataset_state output = whole.state();
      reserve(whole, expected(output.bin_bytes),
              expected(output.output_bytes() - output.bin_bytes));
      continue;
    }
    // All that is in the partitions, and what will be, is to lie in the whole as well.
    std::uint64_t bin_bytes = 0;
    std::uint64_t idx_bytes = 0;
    for (std::size_t i = 0; i < partitions; ++i, ++part) {
      const dataset_state output = part->state();
      const std::uint64_t of_idx = output.output_bytes() - output.bin_bytes;
      reserve(*part, expected(output.bin_bytes), expected(of_idx));
      bin_bytes += output.bin_bytes + expected(output.bin_bytes);
      idx_bytes += of_idx + expected(of_idx);
    }
    reserve(whole, bin_bytes, idx_bytes);
  }
}

}  // namespace millrace::preprocess
