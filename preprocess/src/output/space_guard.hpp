// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "output/committer.hpp"
#include "output/growth_forecast.hpp"

namespace millrace::preprocess {

/// Finds out early that a disk will be full: sets aside what the outputs of a run are going to
/// take, and what is put aside until they are whole, as far as can be told. For the committer's
/// thread.
class space_guard {
 public:
  /// @param inputs, total_bytes  as growth_forecast
  space_guard(std::span<const input_file> inputs, std::uint64_t total_bytes)
      : forecast_(inputs, total_bytes) {}

  /// Call it after each commit.
  ///
  /// @param read_bytes  on disk, of what was committed, or less if that was a giant line
  /// @throws error  the disk has less than the outputs are going to take.
  void update(committer& committer, std::uint64_t read_bytes, bool giant);

 private:
  growth_forecast forecast_;
  bool lags_ = false;  // there was a giant line
};

/// Sets aside the room that the datasets joined from partitions will take: their sizes are known
/// now. Does nothing without partitions.
///
/// @param inputs      names for P.src
/// @param meta_bytes  of the P.meta of all keys together
/// @throws error  the disk has less.
void reserve_for_joining(dataset_outputs& outputs, std::span<const std::string> inputs,
                         std::uint64_t meta_bytes);

/// The same forecast of a job that writes parts, and then the whole beside them: looks at what the
/// disk has free, for nobody holds the files of all parts.
///
/// @param prefix        of the job, for the sentence
/// @param output_bytes  of all parts so far
/// @param growth        as growth_forecast tells it, of these
/// @throws error  the folder's disk has less.
void expect_room_for_whole(const std::filesystem::path& prefix, std::uint64_t output_bytes,
                           double growth);

}  // namespace millrace::preprocess
