// SPDX-License-Identifier: Apache-2.0
// Splits texts from stdin into pretokens, for the scripts of property/:
//
//   split_lines PATTERN [portable|neon|avx2|avx512] [BATCH]
//
// in:  for each text, its size in bytes as a little-endian uint32, then the text (UTF-8)
// out: for each text, the number of its pretokens, then the byte offset of the end of each
//      pretoken, all as little-endian uint32
//
// BATCH is the maximum number of pretoken ends that the program requests per call of the splitter.
// The program exits with status 77 if the machine lacks the instruction set.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "split/splitters.hpp"

namespace {

namespace detail = millrace::tokenizer::detail;

bool read(std::uint32_t& value) {
  return static_cast<bool>(std::cin.read(reinterpret_cast<char*>(&value), sizeof value));
}

void write(const std::vector<std::uint32_t>& values) {
  const auto number = static_cast<std::uint32_t>(values.size());
  std::cout.write(reinterpret_cast<const char*>(&number), sizeof number);
  std::cout.write(reinterpret_cast<const char*>(values.data()),
                  static_cast<std::streamsize>(values.size() * sizeof(std::uint32_t)));
}

int split_all(const detail::word_splitter& splitter, std::size_t batch) {
  std::vector<std::size_t> ends(batch);
  std::vector<std::uint32_t> all;
  for (std::uint32_t size = 0; read(size);) {
    // Allocate exactly as many bytes as the text has, so that a sanitizer reports reads beyond its
    // end.
    const std::vector<char> text = [&] {
      std::vector<char> bytes(size);
      std::cin.read(bytes.data(), size);
      return bytes;
    }();
    all.clear();
    for (std::size_t at = 0;;) {
      const std::size_t count = splitter.next_ends({text.data(), text.size()}, at, ends);
      if (count == 0) break;
      for (std::size_t i = 0; i < count; ++i) all.push_back(static_cast<std::uint32_t>(ends[i]));
      at = ends[count - 1];
    }
    write(all);
  }
  return std::cout.flush() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  const auto pattern = detail::pattern_named(argc > 1 ? argv[1] : "");
  if (!pattern) {
    std::cerr << "split_lines: expected the name of a pattern\n";
    return 2;
  }
  const std::string_view wanted = argc > 2 ? argv[2] : "portable";
  const auto set = wanted == "avx512" ? detail::instruction_set::avx512
                   : wanted == "avx2" ? detail::instruction_set::avx2
                   : wanted == "neon" ? detail::instruction_set::neon
                                      : detail::instruction_set::portable;
  if (!detail::can_run(set)) return 77;
  const std::size_t batch = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 256;
  return split_all(*detail::make_splitter(*pattern, set), batch);
}
