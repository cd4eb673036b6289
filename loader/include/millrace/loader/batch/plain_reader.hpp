// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/io/file_ops.hpp>
#include <millrace/io/unique_fd.hpp>
#include <millrace/loader/io/range_reader.hpp>

namespace millrace::loader::detail {

/// A read a request, nothing else.
class plain_reader final : public range_reader {
 public:
  explicit plain_reader(std::vector<data_file> files) : files_(std::move(files)) {}

  void prefetch(std::span<const file_range>) noexcept override {}

  void gather(std::span<const read_request> requests) override {
    for (const read_request& request : requests) {
      const data_file& file = files_[static_cast<std::size_t>(request.from.file)];
      auto& fd = open_[request.from.file];
      if (!fd) fd = std::make_unique<io::unique_fd>(io::open_read_only(file.path));
      const std::span to(request.to, static_cast<std::size_t>(request.from.bytes));
      if (io::pread_some(*fd, to, request.from.offset, file.path) != to.size()) {
        throw io_error(file.path, "pread (the file is shorter than its index says)", EIO);
      }
      ++requests_;
      bytes_ += to.size();
    }
    ++gathers_;
  }

  reader_report report() const override {
    reader_report report;
    report.asked = report.granted = "pread";
    report.why = "the only one there is";
    report.gathers = gathers_;
    report.requests = requests_;
    report.bytes = report.bytes_read = bytes_;
    return report;
  }

 private:
  std::vector<data_file> files_;
  std::map<std::int64_t, std::unique_ptr<io::unique_fd>> open_;
  std::int64_t gathers_ = 0;
  std::int64_t requests_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace millrace::loader::detail
