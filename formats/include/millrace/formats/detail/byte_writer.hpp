// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <millrace/formats/detail/byte_reader.hpp>

namespace millrace::formats {

/// Appends fields to a buffer. The counterpart of `byte_reader`.
class byte_writer {
 public:
  template <plain_number T>
  void operator()(const char* /*field*/, const T& value) {
    put(std::as_bytes(std::span(&value, 1)));
  }

  void put(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }

  const std::vector<std::byte>& bytes() const noexcept { return bytes_; }
  std::vector<std::byte> take() noexcept { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace millrace::formats
