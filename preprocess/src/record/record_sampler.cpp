// SPDX-License-Identifier: Apache-2.0
#include "record/record_sampler.hpp"

#include <cmath>

#include <millrace/dataset/detail/instant/order_keys.hpp>

namespace millrace::preprocess {

record_sampler::record_sampler(const sample_options& options, std::span<const input_file> inputs)
    : limit_(static_cast<std::uint64_t>(std::ceil(std::ldexp(options.rate, 53)))) {
  constexpr std::uint64_t records = 0x7364726f636572;  // the bytes of "records", little-endian
  const std::uint64_t of_seed = dataset::absorb(dataset::mix64(records), options.seed);
  for (const input_file& file : inputs) {
    hashes_.push_back(dataset::absorb(of_seed, dataset::name_hash(display_path(file).string())));
  }
}

bool record_sampler::takes(std::size_t input, std::uint64_t begin_byte) const noexcept {
  return dataset::draw(hashes_[input], begin_byte) >> 11 < limit_;
}

}  // namespace millrace::preprocess
