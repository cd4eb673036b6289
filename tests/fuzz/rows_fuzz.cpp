// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <millrace/formats/rows.hpp>

/// If a file is valid, it must equal the file that the library writes for the same contents. A
/// mutation hardly ever has the right checksum, so each input is also tried with its checksum
/// corrected.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace::formats;
  const auto try_one = [](std::span<const std::byte> file) {
    try {
      const rows_view rows = parse_rows(file);
      if (!std::ranges::equal(encode_rows(rows.header, rows.ends.to_vector()), file)) std::abort();
    } catch (const millrace::format_error& e) {
      if (e.offset() > file.size()) std::abort();
    }
  };
  const auto file = std::as_bytes(std::span(data, size));
  try_one(file);
  if (size < 4) return 0;
  std::vector<std::byte> summed(file.begin(), file.end());
  const std::uint32_t crc = crc32c(file.first(size - 4));
  std::memcpy(summed.data() + size - 4, &crc, 4);
  try_one(summed);
  return 0;
}
