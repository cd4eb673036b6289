// SPDX-License-Identifier: Apache-2.0
//
// Writes files of packed rows, which tests compare with what another program reads.
//
//   packed_parquet_files < CASES
//
// A case is six numbers (u32, little-endian), then a path, then rows. The numbers are: bytes of the
// path, rows per row group, elements per row group, bytes per page, level of zstd (0: none), number
// of rows. A row is three numbers of elements, then ids (i32), loss mask (u8) and starts (i32). For
// each case, the program prints a line with the numbers of the rows that it refused. These rows are
// not in the file.
#include <zstd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <millrace/io/detail/packed_parquet_writer.hpp>

namespace {

using namespace millrace;

template <class T>
bool read_all(std::span<T> to) {
  return to.empty() || std::fread(to.data(), to.size_bytes(), 1, stdin) == 1;
}

template <class T>
std::vector<T> read_list(std::size_t size) {
  std::vector<T> list(size);
  if (!read_all(std::span(list))) throw std::runtime_error("a case ends early");
  return list;
}

formats::parquet_zstd zstd_of_level(int level) {
  if (level == 0) return {};
  return [level](std::span<const std::byte> page, std::vector<std::byte>& out) {
    const std::size_t begin = out.size();
    out.resize(begin + ZSTD_compressBound(page.size()));
    const std::size_t size =
        ZSTD_compress(out.data() + begin, out.size() - begin, page.data(), page.size(), level);
    if (ZSTD_isError(size) != 0) throw std::runtime_error(ZSTD_getErrorName(size));
    out.resize(begin + size);
  };
}

void write_case(const std::array<std::uint32_t, 6>& numbers) {
  const auto path = read_list<char>(numbers[0]);
  io::packed_parquet_writer writer(io::atomic_file(std::string(path.begin(), path.end())),
                                   {.row_group_rows = numbers[1],
                                    .row_group_elements = numbers[2],
                                    .page_bytes = numbers[3],
                                    .zstd = zstd_of_level(static_cast<int>(numbers[4]))});
  for (std::uint32_t row = 0; row < numbers[5]; ++row) {
    const auto sizes = read_list<std::uint32_t>(3);
    const auto ids = read_list<std::int32_t>(sizes[0]);
    const auto loss_mask = read_list<std::uint8_t>(sizes[1]);
    const auto starts = read_list<std::int32_t>(sizes[2]);
    try {
      writer.add_row(ids, loss_mask, starts);
    } catch (const io_error&) {
      throw;
    } catch (const error&) {
      std::cout << row << ' ';
    }
  }
  writer.finish();
  writer.file().commit();
  std::cout << '\n';
}

}  // namespace

int main() {
  std::array<std::uint32_t, 6> numbers{};
  try {
    while (read_all(std::span<std::uint32_t>(numbers))) write_case(numbers);
  } catch (const std::exception& e) {
    std::cerr << "packed_parquet_files: " << e.what() << '\n';
    return 1;
  }
}
