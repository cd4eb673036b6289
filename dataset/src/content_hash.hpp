// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <millrace/dataset/detail/document_content.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/formats/dtype.hpp>

namespace millrace::dataset::detail {

/// A hash of bytes that are added in any number of parts. Each part but the last has a multiple of
/// 32 bytes. Two multiplications per 32 bytes, so that a core hashes about as fast as it reads.
class content_hash {
 public:
  void add(std::span<const std::byte> bytes) noexcept {
    size_ += bytes.size();
    std::uint64_t words[4];
    for (; bytes.size() >= sizeof(words); bytes = bytes.subspan(sizeof(words))) {
      std::memcpy(words, bytes.data(), sizeof(words));
      mix(words);
    }
    if (bytes.empty()) return;
    std::ranges::fill(words, 0);
    std::memcpy(words, bytes.data(), bytes.size());
    mix(words);
  }

  /// Adds a number, after which nothing but numbers may be added.
  void add_number(std::uint64_t number) noexcept {
    a_ = fold(a_ ^ number, 0x9E3779B97F4A7C15 ^ b_);
  }

  std::uint64_t value() const noexcept {
    return fold(fold(a_ ^ size_, b_ ^ 0xD6E8FEB86659FD93), 0xA0761D6478BD642F);
  }

 private:
  static std::uint64_t fold(std::uint64_t x, std::uint64_t y) noexcept {
    __extension__ using wide = unsigned __int128;
    const wide product = static_cast<wide>(x) * y;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  void mix(const std::uint64_t (&words)[4]) noexcept {
    a_ = fold(a_ ^ words[0], words[1] ^ 0xE7037ED1A0B428DB);
    b_ = fold(b_ ^ words[2], words[3] ^ 0x8EBC6AF09C88C6E3);
  }

  std::uint64_t a_ = 0x589965CC75374CC3;
  std::uint64_t b_ = 0x1D8E4E27C47D124F;
  std::uint64_t size_ = 0;
};

/// Hashes and compares ids as those of one type (`common_id_type`). Used by one thread.
class id_reader {
 public:
  explicit id_reader(formats::dtype type) noexcept : type_(type) {}

  void add_to(content_hash& hash, const token_view& ids) {
    for (std::int64_t at = 0; at < ids.size(); at += most_ids_as) {
      hash.add(ids_as(type_, ids.subview(at, std::min(most_ids_as, ids.size() - at)), a_));
    }
  }
  bool equal(const token_view& a, const token_view& b) {
    if (a.size() != b.size()) return false;
    for (std::int64_t at = 0; at < a.size(); at += most_ids_as) {
      const std::int64_t count = std::min(most_ids_as, a.size() - at);
      const auto part_a = ids_as(type_, a.subview(at, count), a_);
      const auto part_b = ids_as(type_, b.subview(at, count), b_);
      if (std::memcmp(part_a.data(), part_b.data(), part_a.size()) != 0) return false;
    }
    return true;
  }

 private:
  formats::dtype type_;
  std::vector<std::byte> a_;
  std::vector<std::byte> b_;
};

}  // namespace millrace::dataset::detail
