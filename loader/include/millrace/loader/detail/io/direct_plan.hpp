// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <millrace/loader/detail/io/direct_file.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>

namespace millrace::loader {

/// Whole blocks of a file that one call reads. They contain pieces, which are parts of requests.
struct extent {
  std::int64_t file = 0;
  std::uint64_t begin = 0;        ///< first byte in the file; a multiple of the alignment
  std::uint64_t end = 0;          ///< a multiple of the alignment; may exceed the file's size
  std::uint64_t need_end = 0;     ///< end of the bytes that are needed; at most `end`
  std::size_t first_piece = 0;    ///< index of the first piece in the plan's list of pieces
  std::size_t pieces = 0;         ///< number of pieces
  std::byte* straight = nullptr;  ///< request memory that the bytes are read into; null: a slot
};

/// Turns requests into direct reads (O_DIRECT) of whole blocks (extents), sorted by file and
/// offset. Requests that are close together are merged.
///
///   blocks      |.....|.....|.....|.....|.....|.....|.....|.....|
///   requests       |--a--|   |b|                   |----c----|
///   extents     |===========a,b===|           |=======c=========|
///
/// If the offset, length and address of a request are multiples of the alignment, its bytes are
/// read straight into its memory. In a request that is longer than a slot, all whole blocks are
/// also read straight into its memory, provided that their addresses are aligned. All other bytes
/// are read into slots (buffers of `slot_bytes` bytes) and copied later; a request may need several
/// slots. Memory is reused between calls.
class direct_plan {
 public:
  static constexpr std::uint64_t most_gap = std::uint64_t{16} << 10;
  static constexpr std::uint64_t most_straight = std::uint64_t{1} << 20;

  /// @param slot_bytes  a multiple of 4,096
  explicit direct_plan(std::uint64_t slot_bytes) : slot_bytes_(slot_bytes) {}

  /// Makes the plan for these requests. If a request is only announced, its memory is null, and its
  /// bytes are read into slots.
  /// @param alignment_of  a function from a file number to its `direct_alignment`
  template <class AlignmentOf>
  void make(std::span<const read_request> requests, const AlignmentOf& alignment_of) {
    order_.clear();
    pieces_.clear();
    extents_.clear();
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (requests[i].from.bytes > 0) order_.push_back(i);
    }
    std::ranges::sort(order_, {}, [&](std::size_t i) {
      return std::pair(requests[i].from.file, requests[i].from.offset);
    });
    for (const std::size_t i : order_) add(requests[i], alignment_of(requests[i].from.file));
  }

  std::span<const extent> extents() const noexcept { return extents_; }
  std::size_t pieces() const noexcept { return pieces_.size(); }
  std::span<const read_request> pieces_of(const extent& e) const noexcept {
    return std::span(pieces_).subspan(e.first_piece, e.pieces);
  }

 private:
  static std::uint64_t down(std::uint64_t n, std::uint64_t unit) noexcept {
    return n & ~(unit - 1);
  }
  static std::uint64_t up(std::uint64_t n, std::uint64_t unit) noexcept {
    return down(n + unit - 1, unit);
  }
  static read_request part(const read_request& r, std::uint64_t begin, std::uint64_t end) noexcept {
    std::byte* const to = r.to == nullptr ? nullptr : r.to + (begin - r.from.offset);
    return {{r.from.file, begin, end - begin}, to};
  }

  void add(const read_request& r, const direct_alignment& a) {
    const std::uint64_t end = r.from.offset + r.from.bytes;
    const std::uint64_t first = up(r.from.offset, a.offset);
    const std::uint64_t last = down(end, a.offset);
    const bool whole = first == r.from.offset && last == end;
    if (r.to != nullptr && first < last && (whole || r.from.bytes > slot_bytes_)) {
      const auto address = reinterpret_cast<std::uintptr_t>(r.to) + (first - r.from.offset);
      if (address % a.memory == 0) {
        if (r.from.offset < first) add_copied(part(r, r.from.offset, first), a);
        add_straight(part(r, first, last));
        if (last < end) add_copied(part(r, last, end), a);
        return;
      }
    }
    for (std::uint64_t at = r.from.offset; at < end;) {
      const std::uint64_t stop = std::min(end, down(at, a.offset) + slot_bytes_);
      add_copied(part(r, at, stop), a);
      at = stop;
    }
  }

  void add_straight(const read_request& r) {
    const std::uint64_t end = r.from.offset + r.from.bytes;
    for (std::uint64_t at = r.from.offset; at < end;) {
      const std::uint64_t stop = std::min(end, at + most_straight);
      const read_request piece = part(r, at, stop);
      extents_.push_back({r.from.file, at, stop, stop, pieces_.size(), 1, piece.to});
      pieces_.push_back(piece);
      at = stop;
    }
  }

  void add_copied(const read_request& piece, const direct_alignment& a) {
    const std::uint64_t piece_end = piece.from.offset + piece.from.bytes;
    const std::uint64_t begin = down(piece.from.offset, a.offset);
    const std::uint64_t end = up(piece_end, a.offset);
    if (!extents_.empty()) {
      extent& before = extents_.back();
      const bool near = before.file == piece.from.file && before.straight == nullptr &&
                        begin >= before.begin && begin <= before.end + most_gap;
      if (near && std::max(end, before.end) - before.begin <= slot_bytes_) {
        before.end = std::max(end, before.end);
        before.need_end = std::max(piece_end, before.need_end);
        ++before.pieces;
        pieces_.push_back(piece);
        return;
      }
    }
    extents_.push_back({piece.from.file, begin, end, piece_end, pieces_.size(), 1, nullptr});
    pieces_.push_back(piece);
  }

  std::uint64_t slot_bytes_;
  std::vector<std::size_t> order_;
  std::vector<read_request> pieces_;
  std::vector<extent> extents_;
};

}  // namespace millrace::loader
