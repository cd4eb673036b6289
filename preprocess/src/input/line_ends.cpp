// SPDX-License-Identifier: Apache-2.0
#include "input/line_ends.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include <millrace/error.hpp>

#include "input/byte_source.hpp"

namespace millrace::preprocess {

std::optional<std::int64_t> lines_before(const input_file& file, std::uint64_t begin) {
  if (!file.regular || file.compressed_with != compression::none) return std::nullopt;
  try {
    const auto source = open_input(file);
    std::vector<std::byte> chunk(std::size_t{1} << 20);
    std::int64_t lines = 0;
    bool after_return = false;
    while (begin > 0) {
      const auto part = std::span(chunk).first(std::min<std::uint64_t>(begin, chunk.size()));
      const std::size_t n = source->read(part);
      if (n == 0) return std::nullopt;
      for (const std::byte byte : part.first(n)) {
        const bool feed = byte == std::byte{'\n'};
        const bool carriage_return = byte == std::byte{'\r'};
        lines += carriage_return || (feed && !after_return) ? 1 : 0;
        after_return = carriage_return;
      }
      begin -= n;
    }
    return lines;
  } catch (const error&) {
    return std::nullopt;
  }
}

}  // namespace millrace::preprocess
