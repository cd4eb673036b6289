// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "input/input_plan.hpp"

namespace millrace::preprocess {

/// Forecasts the minimum growth of the outputs from the inputs processed so far, a growing sample.
/// The forecast starts low after 1 MiB of text, and rises after 8 and 64 MiB.
///
/// A disk that is large enough must not be refused because the rest of the input differs from the
/// sample. So only a part of the extrapolated growth is reported, and a small part while the sample
/// is small. If the inputs have different compressions, each remaining byte on disk counts as one
/// byte of text. For one thread.
class growth_forecast {
 public:
  /// @param total_bytes  bytes on disk to be read from the inputs; 0 if unknown: then there is
  ///                     never a forecast
  growth_forecast(std::span<const input_file> inputs, std::uint64_t total_bytes);

  /// @param read_bytes  bytes on disk of the input processed so far
  /// @param text_bytes  the same input in decompressed bytes
  /// @param lags        `read_bytes` may cover less input than `text_bytes`, for example after a
  ///                    line that is longer than one read
  /// @return the minimum growth as a multiple of the current output size, each time the sample has
  ///         reached a new threshold; otherwise nothing
  std::optional<double> next(std::uint64_t read_bytes, std::uint64_t text_bytes, bool lags = false);

 private:
  std::uint64_t total_bytes_;
  bool plain_;  // all inputs are
  bool compressed_alike_;
  double said_ = 0;  // share of the growth reported so far
};

}  // namespace millrace::preprocess
