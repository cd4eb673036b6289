// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "buffer.hpp"
#include "page_reader.hpp"

namespace millrace::parquet::detail {

/// Decodes the values of a page, without nulls, in order.
class number_decoder {
 public:
  number_decoder() = default;
  number_decoder(const number_decoder&) = delete;
  number_decoder& operator=(const number_decoder&) = delete;
  virtual ~number_decoder() = default;

  /// Reads `count` numbers as 64 bits: integers extended by their sign, floats as doubles, booleans
  /// as 0 and 1.
  ///
  /// @throws format_error  there are fewer.
  virtual void read(std::uint64_t* out, std::size_t count) = 0;
};
class text_decoder {
 public:
  text_decoder() = default;
  text_decoder(const text_decoder&) = delete;
  text_decoder& operator=(const text_decoder&) = delete;
  virtual ~text_decoder() = default;

  /// Reads at least one and up to `count` texts, which are valid until the next call and may be
  /// read `padding_bytes` past their ends.
  ///
  /// @pre count != 0
  /// @throws format_error  there are fewer.
  virtual std::size_t read(std::string_view* out, std::size_t count) = 0;
};

/// The distinct values of a column of a row group.
class dictionary {
 public:
  /// Reads the dictionary page whose header is `header`.
  void load(page_reader& pages, const page_header& header, const selected_leaf& leaf);

  /// Forgets the values, and keeps the memory.
  void clear() noexcept {
    is_loaded_ = false;
    texts_.clear();
    numbers_.clear();
  }

  bool is_loaded() const noexcept { return is_loaded_; }
  std::size_t text_count() const noexcept { return texts_.size(); }
  std::string_view text(std::size_t index) const noexcept {
    std::uint32_t size = 0;
    const char* at = bytes_.data() + texts_[index];
    std::memcpy(&size, at, sizeof size);
    return {at + sizeof size, size};
  }
  std::span<const std::uint64_t> numbers() const noexcept { return numbers_; }

 private:
  void find_texts(std::span<const char> bytes, std::size_t count, const place& where);

  bool is_loaded_ = false;
  buffer bytes_;
  std::vector<std::uint32_t> texts_;  // where they begin, with their sizes in front
  std::vector<std::uint64_t> numbers_;
};

/// @param bytes   the values of the page; valid as long as the decoder is used
/// @throws format_error; config_error: the encoding cannot be read
std::unique_ptr<number_decoder> make_number_decoder(encoding how, physical type,
                                                    std::span<const char> bytes,
                                                    const dictionary& distinct, const place& where);
std::unique_ptr<text_decoder> make_text_decoder(encoding how, std::span<const char> bytes,
                                                const dictionary& distinct, const place& where);

}  // namespace millrace::parquet::detail
