// SPDX-License-Identifier: Apache-2.0
#include "input/file_format.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <millrace/error.hpp>

#include "input/decoder.hpp"

namespace millrace::preprocess {
namespace {

struct compressed_kind {
  compression compressed_with;
  std::string_view suffix;
  std::string_view first_bytes;
};
constexpr std::array<compressed_kind, 5> compressed_kinds = {
    {{compression::gzip, ".gz", "1f 8b"},
     {compression::zstd, ".zst", "28 b5 2f fd"},
     {compression::bzip2, ".bz2", "42 5a 68 (BZh)"},
     {compression::xz, ".xz", "fd 37 7a 58 5a 00"},
     {compression::parquet, ".parquet", "50 41 52 31 (PAR1)"}}};

const compressed_kind* find(compression compressed_with) {
  const auto* const found =
      std::ranges::find(compressed_kinds, compressed_with, &compressed_kind::compressed_with);
  return found == compressed_kinds.end() ? nullptr : found;
}

}  // namespace

compression compression_of(std::span<const std::byte> head) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (text.starts_with("\x1F\x8B")) return compression::gzip;
  if (text.starts_with("\x28\xB5\x2F\xFD")) return compression::zstd;
  if (text.size() >= 4 && (text[0] & 0xF0) == 0x50 && text.substr(1, 3) == "\x2A\x4D\x18") {
    return compression::zstd;  // a skippable frame
  }
  if (text.starts_with(std::string_view("\xFD"
                                        "7zXZ\0",
                                        6))) {
    return compression::xz;
  }
  // Text may begin with PAR1, but not JSON. PARE is the magic of a file with an encrypted footer.
  if (text.starts_with("PAR1") || text.starts_with("PARE")) return compression::parquet;
  // Plain text may also begin with "BZh", so also check the bytes after the level digit. They must
  // be the magic number of a block, or of the end of an empty stream.
  if (text.size() >= 10 && text.starts_with("BZh") && text[3] >= '1' && text[3] <= '9' &&
      (text.substr(4, 6) == "\x31\x41\x59\x26\x53\x59" ||
       text.substr(4, 6) == "\x17\x72\x45\x38\x50\x90")) {
    return compression::bzip2;
  }
  return compression::none;
}

compression compression_of_suffix(std::string_view suffix) {
  const auto* const found = std::ranges::find(compressed_kinds, suffix, &compressed_kind::suffix);
  return found == compressed_kinds.end() ? compression::none : found->compressed_with;
}

std::string_view first_bytes_of(compression compressed_with) {
  const compressed_kind* found = find(compressed_with);
  return found == nullptr ? "" : found->first_bytes;
}

void expect_library_for(compression compressed_with, std::string_view name) {
  const auto refuse = [&](const char* library, const char* program) {
    throw config_error(
        fmt::format("{}: this build of millrace cannot read {} data, because it was built without "
                    "{}; decompress the file with {}, or build with {}",
                    name, program, library, program, library));
  };
  if (compressed_with == compression::bzip2 && bzip2_version().empty()) refuse("libbz2", "bzip2");
  if (compressed_with == compression::xz && lzma_version().empty()) refuse("liblzma", "xz");
}

std::string optional_input_parts() {
  const auto part = [](const char* name, const std::string& version) {
    return version.empty() ? fmt::format("without {}", name) : fmt::format("{} {}", name, version);
  };
  return part("bzip2", bzip2_version()) + ", " + part("liblzma", lzma_version());
}

namespace {

using namespace std::string_view_literals;

constexpr std::size_t ustar_at = 257;

bool is_printable(char c) {
  return c >= ' ' && c <= '~';
}

// Returns the iconv name of the encoding if it is UTF-16 or UTF-32, or "" for any other text.
// Detects the encoding by its byte order mark, or by the two ASCII characters with which every JSON
// record starts.
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
  // A JSON line can also contain "ustar" at this offset. But only a tar header, which pads names
  // with zeros, has zero bytes before it.
  if (text.size() >= ustar_at + 5 && text.substr(ustar_at, 5) == "ustar" &&
      text.substr(0, ustar_at).find('\0') != text.npos) {
    refuse(
        "a tar archive; unpack it first, or send its text through a pipe: tar -xOf FILE | "
        "preprocess_data --input - ...");
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
