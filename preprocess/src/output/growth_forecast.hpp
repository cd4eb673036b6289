// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "input/input_plan.hpp"

namespace millrace::preprocess {

/// By how much outputs will grow at least, told from the inputs done so far: a sample that grows. A
/// little is said after a mebibyte of text, more after 8 and 64.
///
/// A disk that is large enough is not to be refused because what is still to come is of another
/// kind than the sample. So only a part of what the sample foretells is said, a small one while the
/// sample is small; and where some inputs are compressed otherwise than others, each byte on disk
/// that is still to come counts as one byte of text. For one thread.
class growth_forecast {
 public:
  /// @param total_bytes  on disk, of what is to be read of the inputs; 0 where it is not known:
  ///                     then nothing is ever said
  growth_forecast(std::span<const input_file> inputs, std::uint64_t total_bytes);

  /// @param read_bytes  on disk, of what was done
  /// @param text_bytes  decompressed, of the same
  /// @param lags        `read_bytes` may be of less than that, as behind a line that is longer than
  ///                    what is read at a time
  /// @return the least growth, in multiples of what the outputs have now, whenever there is more to
  ///         say than there was before
  std::optional<double> next(std::uint64_t read_bytes, std::uint64_t text_bytes, bool lags = false);

 private:
  std::uint64_t total_bytes_;
  bool plain_;  // all of them
  bool compressed_alike_;
  double said_ = 0;  // the certain part of the last sample
};

}  // namespace millrace::preprocess
