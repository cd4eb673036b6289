// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include <millrace/loader/detail/io/range_reader.hpp>

namespace millrace::test {

/// Wraps a reader and calls `before(n)` before its n-th gather, counted from 0. `before` may throw,
/// wait or count.
class faulty_reader final : public loader::range_reader {
 public:
  faulty_reader(std::unique_ptr<loader::range_reader> reader,
                std::function<void(std::int64_t)> before)
      : reader_(std::move(reader)), before_(std::move(before)) {}

  void prefetch(std::span<const loader::file_range> ranges) noexcept override {
    reader_->prefetch(ranges);
  }
  void gather(std::span<const loader::read_request> requests) override {
    before_(gathers_++);
    reader_->gather(requests);
  }
  loader::reader_report report() const override { return reader_->report(); }

 private:
  std::unique_ptr<loader::range_reader> reader_;
  std::function<void(std::int64_t)> before_;
  std::int64_t gathers_ = 0;
};

}  // namespace millrace::test
