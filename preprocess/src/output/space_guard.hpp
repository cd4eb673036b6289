// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "output/committer.hpp"
#include "output/growth_forecast.hpp"

namespace millrace::preprocess {

/// Detects early that a disk will fill up: reserves the forecast space for the outputs of a run and
/// for their temporary files. For the committer's thread.
class space_guard {
 public:
  /// @param inputs, total_bytes  as for growth_forecast
  space_guard(std::span<const input_file> inputs, std::uint64_t total_bytes)
      : forecast_(inputs, total_bytes) {}

  /// Call it after each commit.
  ///
  /// @param read_bytes  bytes on disk of what was committed, or fewer after a giant line
  /// @throws error  the disk has less space than the outputs will take.
  void update(committer& committer, std::uint64_t read_bytes, bool giant);

 private:
  growth_forecast forecast_;
  bool lags_ = false;  // there was a giant line
};

/// Reserves the space for the datasets joined from partitions. Their sizes are known at this point.
/// Does nothing without partitions.
///
/// @param inputs      names for P.src
/// @param meta_bytes  total size of the P.meta files of all keys
/// @throws error  the disk has less space.
void reserve_for_joining(dataset_outputs& outputs, std::span<const std::string> inputs,
                         std::uint64_t meta_bytes);

/// The same check for a job that writes parts, and then the whole beside them. It only looks at the
/// free space, because no process holds the files of all parts.
///
/// @param prefix        prefix of the job, for the message
/// @param output_bytes  size of all parts so far
/// @param growth        forecast growth of the parts, from growth_forecast
/// @throws error  the folder's disk has less space.
void expect_room_for_whole(const std::filesystem::path& prefix, std::uint64_t output_bytes,
                           double growth);

}  // namespace millrace::preprocess
