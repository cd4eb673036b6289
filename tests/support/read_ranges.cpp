// SPDX-License-Identifier: Apache-2.0
//
// read_ranges FILE OFFSET BYTES
//
// Reads a range of a file with every available reader. Afterwards, each reader also reads the first
// page of the file, to show that it still works. The program prints a line for each reader. The
// fields of a line, separated by tabs: name of the reader, result for the range, result for the
// page, number of retries. A result is "ok" if the bytes equal those of `byte_at`, "other bytes" if
// they do not, or the error message if the read fails.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "unit/loader/io/reader_kinds.hpp"

namespace {

using namespace millrace;  // NOLINT: a program

// Returns byte i of the file, as read_errors.py writes it. No two pages are equal.
std::byte byte_at(std::uint64_t i) {
  return static_cast<std::byte>((i * 7 + i / 4096) & 0xff);
}

std::string result_of(loader::range_reader& reader, const loader::file_range& range) try {
  std::vector<std::byte> memory(range.bytes, std::byte{0xAB});
  const loader::read_request request{range, memory.data()};
  reader.gather({&request, 1});
  for (std::uint64_t i = 0; i < range.bytes; ++i) {
    if (memory[i] != byte_at(range.offset + i)) return "other bytes";
  }
  return "ok";
} catch (const io_error& e) {
  return e.what();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: read_ranges FILE OFFSET BYTES\n";
    return 2;
  }
  try {
    const std::filesystem::path path = argv[1];
    const loader::file_range range{0, std::strtoull(argv[2], nullptr, 10),
                                   std::strtoull(argv[3], nullptr, 10)};
    const std::uint64_t size = std::filesystem::file_size(path);
    for (const test::reader_kind& kind : test::reader_kinds()) {
      loader::reader_options options;
      options.files = std::make_shared<loader::open_files>();
      options.populate = false;  // otherwise, a read could meet the fault at any time
      options.retry = {.attempts = 2, .first_wait = std::chrono::milliseconds(1)};
      const auto reader = kind.make({{path, size}}, options);
      const std::string of_range = result_of(*reader, range);
      const std::string of_page = result_of(*reader, {0, 0, 4096});
      std::cout << kind.name << '\t' << of_range << '\t' << of_page << '\t'
                << reader->report().retries << '\n';
    }
    return 0;
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
