// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <vector>

#include <millrace/formats/sum.hpp>

/// If a file is valid, it must equal the file that the library writes for the same contents. A
/// mutation hardly ever has the right root, so each input is also tried with its root corrected.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace::formats;
  const auto try_one = [](std::span<const std::byte> file) {
    try {
      const sum_view sum = parse_sum(file);
      const auto again = encode_sum(sum.bin_bytes, sum.bin_blocks.to_vector(), sum.idx_bytes,
                                    sum.idx_blocks.to_vector(), sum.version);
      if (!std::ranges::equal(again, file)) std::abort();
    } catch (const millrace::format_error& e) {
      if (e.offset() > file.size()) std::abort();
    }
  };
  const auto file = std::as_bytes(std::span(data, size));
  try_one(file);
  if (size < sum_root_bytes) return 0;
  std::vector<std::byte> rooted(file.begin(), file.end() - sum_root_bytes);
  const auto root = sha256().update(rooted).finish();
  const auto root_bytes = std::as_bytes(std::span(root));
  rooted.insert(rooted.end(), root_bytes.begin(), root_bytes.end());
  try_one(rooted);
  return 0;
}
