// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "input/input_plan.hpp"
#include "output/committer.hpp"

namespace millrace::preprocess {

/// Forecasts a lower bound for the further growth of the outputs. The forecast is extrapolated from
/// a sample, which is the input processed so far. There are three forecasts: after 1 MiB, 8 MiB and
/// 64 MiB of text.
///
/// The rest of the input may differ from the sample, and a disk that is large enough must never be
/// refused. So a forecast is only a fraction of the extrapolated growth; the smaller the sample,
/// the smaller the fraction. If the inputs have different compressions, each byte on disk that is
/// not yet read is assumed to yield only one byte of text. Not thread-safe.
class growth_forecast {
 public:
  /// @param total_bytes  bytes on disk to be read from the inputs; 0 if unknown, in which case
  ///                     there is never a forecast
  growth_forecast(std::span<const input_file> inputs, std::uint64_t total_bytes);

  /// Updates the sample, and returns a forecast each time the sample has reached a new threshold.
  ///
  /// @param read_bytes  size on disk of the input processed so far
  /// @param text_bytes  size of the same input after decompression
  /// @param lags        true if `read_bytes` may be too small for the input of `text_bytes`, as
  ///                    after a giant line
  /// @return the minimum growth as a multiple of the current output size, or nothing if there is no
  ///         new forecast
  std::optional<double> next(std::uint64_t read_bytes, std::uint64_t text_bytes, bool lags = false);

 private:
  std::uint64_t total_bytes_;
  bool plain_;  // no input is compressed
  bool compressed_alike_;
  double said_ = 0;  // `certain_part` of the last forecast
};

/// Detects early that a disk will fill up: forecasts the space that the outputs and temporary files
/// of a run will need, and reserves that space. Use this only on the committer's thread.
class space_guard {
 public:
  /// @param inputs, total_bytes  as in growth_forecast
  space_guard(std::span<const input_file> inputs, std::uint64_t total_bytes)
      : forecast_(inputs, total_bytes) {}

  /// Call this after each commit.
  ///
  /// @param read_bytes  size on disk of the input committed so far; may be too small after a giant
  ///                    line
  /// @param giant       true if this commit was a giant line
  /// @throws error  the disk has less space than the outputs will need.
  void update(committer& committer, std::uint64_t read_bytes, bool giant);

 private:
  growth_forecast forecast_;
  bool lags_ = false;  // there was a giant line, so read_bytes may be too small
};

/// Reserves the space for the datasets that will be joined from partitions. Call this after the
/// partitions are complete, because their sizes must be known. Does nothing if there are no
/// partitions.
///
/// @param inputs      the inputs, for P.src
/// @param meta_bytes  total size of the P.meta files of all keys
/// @throws error  the disk has too little space.
void reserve_for_joining(dataset_outputs& outputs, std::span<const formats::src_input> inputs,
                         std::uint64_t meta_bytes);

/// Checks that the disk has space for an MPI job, which first writes parts and then merges them to
/// datasets in the same folder. Reserves nothing, because no process has the files of all parts
/// open.
///
/// @param prefix        prefix of the job, for the message
/// @param output_bytes  size of all parts so far
/// @param growth        forecast growth of the parts, from growth_forecast
/// @throws error  the disk of the folder has too little space.
void expect_room_for_whole(const std::filesystem::path& prefix, std::uint64_t output_bytes,
                           double growth);

}  // namespace millrace::preprocess
