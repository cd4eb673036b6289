// SPDX-License-Identifier: Apache-2.0
#include "output/growth_forecast.hpp"

#include <algorithm>
#include <array>

namespace millrace::preprocess {
namespace {

/// A sample size, and the part of the extrapolated growth that counts as certain at this size.
struct sample {
  std::uint64_t text_bytes;
  double certain_part;
};
constexpr std::array<sample, 3> samples = {{
    {std::uint64_t{1} << 20, 0.25},
    {std::uint64_t{8} << 20, 0.5},
    {std::uint64_t{64} << 20, 0.8},
}};

}  // namespace

growth_forecast::growth_forecast(std::span<const input_file> inputs, std::uint64_t total_bytes)
    : total_bytes_(total_bytes),
      plain_(std::ranges::all_of(
          inputs,
          [](const input_file& each) { return each.compressed_with == compression::none; })),
      compressed_alike_(std::ranges::adjacent_find(inputs, std::ranges::not_equal_to(),
                                                   &input_file::compressed_with) == inputs.end()) {}

std::optional<double> growth_forecast::next(std::uint64_t read_bytes, std::uint64_t text_bytes,
                                            bool lags) {
  if (plain_) read_bytes = text_bytes;
  double certain = 0;
  for (const sample& each : samples) {
    if (text_bytes >= each.text_bytes) certain = each.certain_part;
  }
  if (certain <= said_ || read_bytes == 0 || read_bytes >= total_bytes_) return std::nullopt;
  said_ = certain;
  const std::uint64_t done =
      compressed_alike_ && !lags ? read_bytes : std::max(read_bytes, text_bytes);
  return certain * static_cast<double>(total_bytes_ - read_bytes) / static_cast<double>(done);
}

}  // namespace millrace::preprocess
