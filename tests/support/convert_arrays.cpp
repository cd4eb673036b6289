// SPDX-License-Identifier: Apache-2.0
//
// Converts JSON arrays to JSON lines as preprocess_data does. Tests compare the lines with those of
// another program.
//
//   convert_arrays STEP < TEXTS
//
// Each text in TEXTS is given as its size (four bytes, little-endian), followed by its bytes. The
// program reads at most STEP bytes at a time. For each text, it writes the JSON lines in the same
// form (size, bytes). If a text is invalid, it writes four bytes 0xFF instead.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include <millrace/error.hpp>

#include "input/array_lines.hpp"
#include "support/read_source.hpp"
#include "support/text_source.hpp"

int main(int argc, char** argv) {
  using namespace millrace;
  const std::size_t step = argc == 2 ? std::strtoul(argv[1], nullptr, 10) : 0;
  if (step == 0) {
    std::cerr << "usage: convert_arrays STEP < TEXTS\n";
    return 2;
  }
  std::uint32_t size = 0;
  while (std::fread(&size, sizeof size, 1, stdin) == 1) {
    std::string text(size, '\0');
    if (size != 0 && std::fread(text.data(), size, 1, stdin) != 1) return 1;
    try {
      preprocess::array_lines lines(std::make_unique<test::text_source>(text, step), "text");
      const std::string made = test::read_source(lines, UINT64_MAX, step);
      size = static_cast<std::uint32_t>(made.size());
      std::fwrite(&size, sizeof size, 1, stdout);
      std::fwrite(made.data(), 1, made.size(), stdout);
    } catch (const format_error&) {
      size = UINT32_MAX;
      std::fwrite(&size, sizeof size, 1, stdout);
    }
  }
}
