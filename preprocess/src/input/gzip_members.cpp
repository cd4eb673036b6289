// SPDX-License-Identifier: Apache-2.0
#include "input/gzip_members.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include <millrace/io/file_ops.hpp>

#include "input/decoder.hpp"
#include "input/zstd_frames.hpp"

namespace millrace::preprocess {
namespace {

constexpr std::size_t least_member_bytes = 10 + 2 + 8;
constexpr std::size_t trailer_size_bytes = 4;  // ISIZE, the last field of a member
constexpr std::size_t search_bytes = std::size_t{1} << 20;
constexpr std::size_t header_window_bytes = 64;
constexpr std::string_view magic = "\x1F\x8B\x08";

bool begins_member(std::span<const std::byte> at) {
  return at.size() > 3 && std::memcmp(at.data(), magic.data(), magic.size()) == 0 &&
         (std::to_integer<unsigned>(at[3]) & 0xE0U) == 0;  // the reserved flags must be 0
}

}  // namespace

// Returns at least `least` bytes of the file from `offset` on, or fewer only at the end of the
// file. If the buffer does not hold these bytes yet, fills it with up to `most` bytes from `offset`
// on.
std::span<const std::byte> gzip_members::window(std::uint64_t offset, std::size_t least,
                                                std::size_t most) {
  const std::uint64_t left = file_size_ - offset;
  const std::uint64_t buffer_end = buffer_offset_ + buffer_.size();
  if (offset < buffer_offset_ || offset + std::min<std::uint64_t>(least, left) > buffer_end) {
    buffer_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(most, left)));
    buffer_.resize(io::pread_some(fd_, buffer_, offset, path_));
    buffer_offset_ = offset;
  }
  const auto from = std::span(buffer_).subspan(static_cast<std::size_t>(offset - buffer_offset_));
  return from.first(std::min(from.size(), most));
}

std::optional<unit_size> gzip_members::size_at(std::uint64_t offset) {
  if (!begins_member(window(offset, header_window_bytes))) return std::nullopt;
  const auto end = told_end(offset);
  if (!end) return search_end(offset);
  if (*end > file_size_) return std::nullopt;
  const std::uint64_t text = text_bytes_before(*end);
  const bool padding = *end != file_size_ && window(*end, header_window_bytes)[0] == std::byte{0};
  if (padding && !padding_from(*end)) return std::nullopt;
  return unit_size{(padding ? file_size_ : *end) - offset, text};
}

// Returns the end of the member at `offset` if its header declares the size. BGZF headers, which
// bgzip and samtools write, do this: their extra field BC holds the size of the member minus one.
std::optional<std::uint64_t> gzip_members::told_end(std::uint64_t offset) {
  const auto head = window(offset, header_window_bytes);
  if (head.size() < 12 || (std::to_integer<unsigned>(head[3]) & 4U) == 0) return std::nullopt;
  const std::size_t extra_end = 12 + little_endian(head.subspan(10, 2));
  for (std::size_t at = 12; at + 4 <= std::min(extra_end, head.size());) {
    const std::size_t size = little_endian(head.subspan(at + 2, 2));
    const bool bc = head[at] == std::byte{'B'} && head[at + 1] == std::byte{'C'};
    at += 4;
    if (bc && size == 2 && at + 2 <= head.size()) {
      const std::uint64_t member = little_endian(head.subspan(at, 2)) + 1;
      if (member < least_member_bytes) return std::nullopt;
      return offset + member;
    }
    at += size;
  }
  return std::nullopt;
}

std::optional<unit_size> gzip_members::search_end(std::uint64_t offset) {
  const std::uint64_t limit = offset + std::min(most_compressed_bytes, file_size_ - offset);
  for (std::uint64_t at = offset + least_member_bytes; at + magic.size() < limit;) {
    const auto bytes = window(at, header_window_bytes, search_bytes);
    const void* const found = ::memmem(bytes.data(), bytes.size(), magic.data(), magic.size());
    if (found == nullptr) {
      if (bytes.size() <= magic.size()) break;
      at += bytes.size() - magic.size();
      continue;
    }
    at += static_cast<std::uint64_t>(static_cast<const std::byte*>(found) - bytes.data());
    if (at < limit && begins_member(window(at, 4)) && may_reach(offset, at) &&
        decompress(at, proof_bytes).sound) {
      return unit_size{at - offset, text_bytes_before(at)};
    }
    ++at;
  }
  if (limit != file_size_) return std::nullopt;
  return last_member(offset);
}

// Returns the sizes of the last member of the file. Zeros at the end of the file may be padding or
// part of the member's size field.
std::optional<unit_size> gzip_members::last_member(std::uint64_t offset) {
  if (window(file_size_ - 1, 1)[0] != std::byte{0}) {
    if (!may_reach(offset, file_size_)) return std::nullopt;
    return unit_size{file_size_ - offset, text_bytes_before(file_size_)};
  }
  // The last byte of the file is zero. If it belongs to the size field, it is the highest byte of
  // that field, so the text has fewer than 2^24 bytes.
  const trial whole = decompress(offset, std::uint64_t{1} << 24);
  if (!whole.ended || !padding_from(offset + whole.size.compressed_bytes)) return std::nullopt;
  return unit_size{file_size_ - offset, whole.size.text_bytes};
}

bool gzip_members::padding_from(std::uint64_t offset) {
  while (offset != file_size_) {
    const auto bytes = window(offset, search_bytes);
    if (bytes.empty()) return false;  // the file shrank
    if (!std::ranges::all_of(bytes, [](std::byte each) { return each == std::byte{0}; })) {
      return false;
    }
    offset += bytes.size();
  }
  return true;
}

std::uint64_t gzip_members::text_bytes_before(std::uint64_t end) {
  std::array<std::byte, trailer_size_bytes> size{};
  (void)io::pread_some(fd_, size, end - size.size(), path_);
  return little_endian(size);
}

// Returns whether the size field before `end` is plausible for a member at `offset`. One compressed
// byte yields at most 1032 bytes of text. A member of more than twice the size of its text plus 64
// KiB is possible, but so rare that it is not accepted.
bool gzip_members::may_reach(std::uint64_t offset, std::uint64_t end) {
  const std::uint64_t compressed = end - offset;
  const std::uint64_t text = text_bytes_before(end);
  return text <= 1032 * compressed && compressed <= 2 * text + (std::uint64_t{64} << 10);
}

gzip_members::trial gzip_members::decompress(std::uint64_t offset, std::uint64_t most_text_bytes) {
  constexpr std::size_t read_bytes = std::size_t{4} << 10;
  std::vector<std::byte> compressed(read_bytes);
  std::vector<std::byte> text(read_bytes);
  const auto decoder = make_gzip_decoder();
  decoder->start();
  trial result{.sound = true};
  while (result.size.text_bytes <= most_text_bytes) {
    const std::size_t n =
        io::pread_some(fd_, compressed, offset + result.size.compressed_bytes, path_);
    std::span<const std::byte> in(compressed.data(), n);
    std::span<std::byte> out = text;
    const decoder::step step = decoder->decode(in, out, n == 0);
    result.size.compressed_bytes += n - in.size();
    result.size.text_bytes += text.size() - out.size();
    result.ended = step.ended;
    result.sound = step.problem.empty();
    const bool stuck = in.size() == n && out.size() == text.size();
    if (step.ended || !result.sound || stuck) break;
  }
  return result;
}

}  // namespace millrace::preprocess
