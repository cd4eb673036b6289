// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>

#include <millrace/dataset/detail/lost_pages.hpp>
#include <millrace/dataset/detail/megatron/gpt_index.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// A column of an index, in memory or in a file. Its numbers keep their stored type and may be
/// unaligned.
class index_numbers {
 public:
  enum class type : std::uint8_t { int32, uint32, int64 };

  index_numbers() = default;
  /// @pre bytes.size() is a multiple of the size of a number
  index_numbers(type which, std::span<const std::byte> bytes) noexcept
      : data_(bytes.data()), size_(bytes.size() / (which == type::int64 ? 8 : 4)), type_(which) {}

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(size_); }
  std::size_t number_bytes() const noexcept { return type_ == type::int64 ? 8 : 4; }

  /// @pre 0 <= i < size()
  std::int64_t operator[](std::int64_t i) const noexcept {
    assert(0 <= i && i < size());
    const auto at = static_cast<std::size_t>(i);
    switch (type_) {
      case type::int32:
        return load<std::int32_t>(at);
      case type::uint32:
        return load<std::uint32_t>(at);
      default:
        return load<std::int64_t>(at);
    }
  }

 private:
  template <class T>
  T load(std::size_t i) const noexcept {
    T value;
    std::memcpy(&value, data_ + i * sizeof(T), sizeof(T));
    return value;
  }

  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  type type_ = type::int32;
};

/// The three indices of a GPTDataset, in memory or in mapped files. The view keeps the memory or
/// the mappings alive; copies share them. Many threads may read the indices at once.
struct gpt_index_view {
  index_numbers document;  ///< [document_entries]
  index_numbers sample;    ///< [samples + 1, 2], row by row
  index_numbers shuffle;   ///< [samples]
  /// Files of the document, sample and shuffle index; empty for indices in memory.
  std::filesystem::path document_path, sample_path, shuffle_path;
  std::uint64_t document_offset = 0, sample_offset = 0, shuffle_offset = 0;  ///< offsets in bytes
  /// Watches of the mappings; null for indices in memory.
  const lost_page_watch* document_watch = nullptr;
  const lost_page_watch* sample_watch = nullptr;
  const lost_page_watch* shuffle_watch = nullptr;
  std::shared_ptr<const void> owner;

  /// Call this function after reading numbers from the indices.
  /// @throws io_error  a page that was read was lost, as for `lost_page_watch::check_there`
  void check_there() const {
    if (document_watch != nullptr) document_watch->check_there(document_path);
    if (sample_watch != nullptr) sample_watch->check_there(sample_path);
    if (shuffle_watch != nullptr) shuffle_watch->check_there(shuffle_path);
  }
};

/// Returns a view that owns the given indices.
MILLRACE_EXPORT gpt_index_view view_of(gpt_index index);

}  // namespace millrace::dataset
