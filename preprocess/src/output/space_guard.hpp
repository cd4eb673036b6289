// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "output/committer.hpp"
#include "output/growth_forecast.hpp"

namespace millrace::preprocess {

/// Detects early that a disk will fill up. It forecasts how much space the outputs of a run and
/// their temporary files will need, and reserves that space. Use it only on the committer's thread.
class space_guard {
 public:
  /// @param inputs, total_bytes  as in growth_forecast
  space_guard(std::span<const input_file> inputs, std::uint64_t total_bytes)
      : forecast_(inputs, total_bytes) {}

  /// Call this after each commit.
  ///
  /// @param read_bytes  size on disk of the input committed so far; can be too small after a giant
  ///                    line
  /// @param giant       true if this commit was a giant line
  /// @throws error  the disk has less space than the outputs will need.
  void update(committer& committer, std::uint64_t read_bytes, bool giant);

 private:
  growth_forecast forecast_;
  bool lags_ = false;  // there was a giant line, so read_bytes may be too small
};

/// Reserves the space for the datasets that will be joined from partitions. Call this when the
/// partitions are complete, because their sizes must be known. Does nothing without partitions.
///
/// @param inputs      names of the inputs, for P.src
/// @param meta_bytes  total size of the P.meta files of all keys
/// @throws error  the disk has too little space.
void reserve_for_joining(dataset_outputs& outputs, std::span<const std::string> inputs,
                         std::uint64_t meta_bytes);

/// Checks the space for an MPI job, which writes parts and then the merged datasets next to them.
/// It only checks the free space and reserves nothing, because no process has the files of all
/// parts open.
///
/// @param prefix        prefix of the job, for the message
/// @param output_bytes  size of all parts so far
/// @param growth        forecast growth of the parts, from growth_forecast
/// @throws error  the disk of the folder has too little space.
void expect_room_for_whole(const std::filesystem::path& prefix, std::uint64_t output_bytes,
                           double growth);

}  // namespace millrace::preprocess
