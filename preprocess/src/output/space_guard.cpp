// SPDX-License-Identifier: Apache-2.0
#include "output/space_guard.hpp"

#include <sys/statvfs.h>

#include <cerrno>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/io/file_ops.hpp>

namespace millrace::preprocess {
namespace {

void reserve(dataset_writer& writer, const dataset_state& grown, std::uint64_t more_bytes) {
  try {
    writer.reserve(grown);
  } catch (const io_error& e) {
    if (e.code() != ENOSPC && e.code() != EDQUOT) throw;
    throw error(
        fmt::format("{}: the disk has no room for what is still to come, about {} bytes; make "
                    "room, then --resume",
                    writer.paths().bin.string(), more_bytes));
  }
}

}  // namespace

void space_guard::update(committer& committer, std::uint64_t read_bytes, bool giant) {
  lags_ = lags_ || giant;
  std::uint64_t text_bytes = 0;
  for (const input_total& total : committer.state().inputs) text_bytes += total.text_bytes;
  const auto growth = forecast_.next(read_bytes, text_bytes, lags_);
  if (!growth) return;
  dataset_outputs& outputs = committer.outputs();
  const std::size_t partitions = outputs.parts().size() / outputs.wholes().size();
  auto part = outputs.parts().begin();
  for (dataset_writer& whole : outputs.wholes()) {
    const dataset_state now = whole.state();
    dataset_state grown = now.grown(*growth);
    // All that is in the partitions, and what will be, is to lie in the whole as well.
    for (std::size_t i = 0; i < partitions; ++i, ++part) {
      const dataset_state of_part = part->state();
      const dataset_state part_grown = of_part.grown(*growth);
      reserve(*part, part_grown, part_grown.output_bytes() - of_part.output_bytes());
      grown += part_grown;
    }
    reserve(whole, grown, grown.output_bytes() - now.output_bytes());
  }
}

void expect_room_for_whole(const std::filesystem::path& prefix, std::uint64_t output_bytes,
                           double growth) {
  const auto parts = static_cast<double>(output_bytes);
  const auto needed = static_cast<std::uint64_t>(parts * growth + parts * (1 + growth));
  struct ::statvfs disk {};
  const auto folder = io::parent_folder(prefix);
  if (io::uninterrupted([&] { return ::statvfs(folder.c_str(), &disk); }) != 0) return;
  const std::uint64_t free_bytes = std::uint64_t{disk.f_bavail} * disk.f_frsize;
  if (needed <= free_bytes) return;
  throw error(
      fmt::format("{}: the disk has no room for what is still to come, about {} bytes with the "
                  "whole, which lies beside its parts until it is done; it has {}: make room, then "
                  "--resume",
                  prefix.string(), needed, free_bytes));
}

}  // namespace millrace::preprocess
