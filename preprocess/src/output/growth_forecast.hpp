// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "input/input_plan.hpp"

namespace millrace::preprocess {

/// Forecasts the minimum by which the outputs will still grow. It extrapolates from a sample: the
/// input processed so far. The first forecast comes after 1 MiB of text and is low. Higher
/// forecasts follow after 8 MiB and 64 MiB.
///
/// A disk that is large enough must not be refused because the rest of the input differs from the
/// sample. So only a part of the extrapolated growth is reported, and a smaller part while the
/// sample is small. If the inputs have different compressions, each byte on disk that is not yet
/// read counts as one byte of text. Not thread-safe.
class growth_forecast {
 public:
  /// @param total_bytes  bytes on disk to be read from the inputs. If it is 0 (unknown), there is
  ///                     never a forecast.
  growth_forecast(std::span<const input_file> inputs, std::uint64_t total_bytes);

  /// Updates the sample, and returns a forecast each time the sample has reached a new threshold.
  ///
  /// @param read_bytes  size on disk of the input processed so far
  /// @param text_bytes  size of the same input after decompression
  /// @param lags        true if `read_bytes` may cover less input than `text_bytes`, for example
  ///                    after a line that is longer than one read
  /// @return the minimum growth as a multiple of the current output size, or nothing if there is no
  ///         new forecast
  std::optional<double> next(std::uint64_t read_bytes, std::uint64_t text_bytes, bool lags = false);

 private:
  std::uint64_t total_bytes_;
  bool plain_;  // no input is compressed
  bool compressed_alike_;
  double said_ = 0;  // `certain_part` of the last forecast
};

}  // namespace millrace::preprocess
