// SPDX-License-Identifier: Apache-2.0
#include "input/foreign_format.hpp"

#include <fmt/format.h>

#include <millrace/error.hpp>

namespace millrace::preprocess {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t ustar_at = 257;

bool is_printable(char c) {
  return c >= ' ' && c <= '~';
}

// Returns the iconv name of a UTF-16 or UTF-32 encoding, or "" for any other text. Detects the
// encoding by its byte order mark, or by the two ASCII characters with which every JSON record
// starts.
std::string_view wide_encoding_of(std::string_view head) {
  if (head.starts_with("\0\0\xFE\xFF"sv) || head.starts_with("\xFF\xFE\0\0"sv)) return "UTF-32";
  if (head.starts_with("\xFE\xFF"sv) || head.starts_with("\xFF\xFE"sv)) return "UTF-16";
  if (head.size() < 8) return "";
  // Returns whether the text begins with two code units of `size` bytes each. In each unit, the
  // byte at index `at` must be an ASCII character, and all other bytes must be zero.
  const auto units = [&](std::size_t size, std::size_t at) {
    for (std::size_t i = 0; i < 2 * size; ++i) {
      if (i % size == at ? !is_printable(head[i]) : head[i] != 0) return false;
    }
    return true;
  };
  if (units(4, 0)) return "UTF-32LE";
  if (units(4, 3)) return "UTF-32BE";
  if (units(2, 0)) return "UTF-16LE";
  return units(2, 1) ? "UTF-16BE" : "";
}

}  // namespace

bool is_dataset_index(std::span<const std::byte> head) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  return text.starts_with("MMIDIDX\0\0"sv);
}

void expect_text(std::span<const std::byte> head, std::string_view name) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  const auto refuse = [&](const std::string& what) {
    throw config_error(fmt::format("{}: {}", name, what));
  };
  if (text.starts_with("PK\x03\x04"sv) || text.starts_with("PK\x05\x06"sv)) {
    refuse(
        "a zip archive; unpack it first, or send its text through a pipe: unzip -p FILE | "
        "preprocess_data --input - ...");
  }
  // A tar header pads names with zero bytes. A line of JSON can also contain "ustar" at this
  // offset, but no zero bytes.
  if (text.size() >= ustar_at + 5 && text.substr(ustar_at, 5) == "ustar" &&
      text.substr(0, ustar_at).find('\0') != text.npos) {
    refuse(
        "a tar archive; unpack it first, or send its text through a pipe: tar -xOf FILE | "
        "preprocess_data --input - ...");
  }
  if (text.starts_with("PAR1\x15"sv)) {
    refuse("a Parquet file; write its records as JSON lines first");
  }
  if (is_dataset_index(head)) {
    refuse(fmt::format("the index of a dataset, not text; {}", leave_out_dataset));
  }
  if (const auto encoding = wide_encoding_of(text); !encoding.empty()) {
    refuse(fmt::format("text in {0}, expected UTF-8; convert it: iconv -f {0} -t UTF-8 FILE > NEW",
                       encoding));
  }
}

}  // namespace millrace::preprocess
