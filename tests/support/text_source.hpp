// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "input/byte_source.hpp"

namespace millrace::test {

/// A byte source that returns the bytes of a text, at most `step` bytes per read.
class text_source final : public preprocess::byte_source {
 public:
  explicit text_source(std::string text, std::size_t step = SIZE_MAX)
      : text_(std::move(text)), step_(step) {}

  std::size_t read(std::span<std::byte> out) override {
    const std::size_t n = std::min({out.size(), text_.size() - at_, step_});
    std::memcpy(out.data(), text_.data() + at_, n);
    at_ += n;
    return n;
  }
  std::uint64_t position_bytes() const noexcept override { return at_; }
  void cancel() noexcept override {}

 private:
  std::string text_;
  std::size_t step_;
  std::size_t at_ = 0;
};

}  // namespace millrace::test
