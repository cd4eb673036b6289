// SPDX-License-Identifier: Apache-2.0
#include "output/text_digests.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/formats/detail/byte_reader.hpp>
#include <millrace/formats/detail/byte_writer.hpp>
#include <millrace/formats/detail/crc32c.hpp>
#include <millrace/formats/detail/hex.hpp>

#include "input/read_back.hpp"

namespace millrace::preprocess {
namespace {

constexpr std::array<unsigned char, 8> magic = {'M', 'I', 'L', 'L', 'T', 'X', 'T', 0};
constexpr std::uint32_t version = 1;

std::vector<std::byte> header() {
  formats::byte_writer writer;
  writer.put(std::as_bytes(std::span(magic)));
  writer("the version", version);
  writer("the reserved field", std::uint32_t{0});
  return writer.take();
}

// Returns the CRC of all bytes of `file` but its last four. Keeps little of the file in memory.
std::uint32_t checksum_of(const io::file_mapping& file) {
  constexpr std::size_t piece_bytes = std::size_t{4} << 20;
  auto rest = file.bytes().first(file.bytes().size() - sizeof(std::uint32_t));
  std::uint32_t crc32c = 0;
  while (!rest.empty()) {
    const auto piece = rest.first(std::min(piece_bytes, rest.size()));
    crc32c = formats::crc32c(piece, crc32c);
    rest = rest.subspan(piece.size());
    if (!rest.empty()) file.let_go();
  }
  return crc32c;
}

}  // namespace

digest_writer::digest_writer(const std::filesystem::path& path) : file_(path) {
  append_bytes(header());
}

digest_writer::digest_writer(const std::filesystem::path& path, std::int64_t documents)
    : file_(path, io::atomic_file::start::go_on) {
  cut_back(file_,
           digests_header_bytes + sizeof(text_digest) * static_cast<std::uint64_t>(documents));
  bool is_first = true;
  read_back(file_, 0, file_.size_bytes(), [&](std::span<const std::byte> bytes) {
    if (std::exchange(is_first, false) &&
        !std::ranges::equal(bytes.first(digests_header_bytes), header())) {
      throw config_error(fmt::format(
          "--resume: {}: the header differs from the one that this run wrote; pass --overwrite to "
          "start again",
          file_.partial_path().string()));
    }
    crc32c_ = formats::crc32c(bytes, crc32c_);
  });
}

void digest_writer::append_bytes(std::span<const std::byte> bytes) {
  file_.append(bytes);
  crc32c_ = formats::crc32c(bytes, crc32c_);
}

void digest_writer::append(std::span<const text_digest> digests) {
  append_bytes(std::as_bytes(digests));
}

void digest_writer::finish(std::int64_t documents) {
  formats::byte_writer trailer;
  trailer("the number of documents", static_cast<std::uint64_t>(documents));
  trailer("the checksum", formats::crc32c(trailer.bytes(), crc32c_));
  file_.append(trailer.bytes());
  assert(file_.size_bytes() == digests_bytes(static_cast<std::uint64_t>(documents)));
  file_.resize(file_.size_bytes());  // frees the reserved space after the end
}

digest_file::digest_file(const std::filesystem::path& path) : file_(path) {
  try {
    formats::byte_reader reader(file_.bytes());
    if (!std::ranges::equal(reader.take("the magic", magic.size()),
                            std::as_bytes(std::span(magic)))) {
      throw format_error(0, "expected the magic of a .digests file");
    }
    std::uint32_t found_version = 0;
    std::uint32_t reserved = 0;
    reader("the version", found_version);
    if (found_version != version) {
      throw format_error(8, fmt::format("expected version {}, found {}", version, found_version));
    }
    reader("the reserved field", reserved);
    if (reserved != 0) {
      throw format_error(12, fmt::format("the reserved field is {}, expected 0", reserved));
    }
    const std::size_t body =
        reader.remaining() < digests_trailer_bytes ? 0 : reader.remaining() - digests_trailer_bytes;
    digests_ = reader.take("the digests", body);
    std::uint64_t documents = 0;
    std::uint32_t crc32c = 0;
    reader("the number of documents", documents);
    reader("the checksum", crc32c);
    if (body % sizeof(text_digest) != 0 || documents != body / sizeof(text_digest)) {
      throw format_error(digests_header_bytes + body,
                         fmt::format("{} digests cannot be in {} bytes", documents, body));
    }
    const std::uint32_t found = checksum_of(file_);
    if (crc32c != found) {
      throw format_error(0, fmt::format("its checksum is {}, expected {}", formats::hex(found),
                                        formats::hex(crc32c)));
    }
  } catch (const format_error& e) {
    throw e.in(path);
  }
}

}  // namespace millrace::preprocess
