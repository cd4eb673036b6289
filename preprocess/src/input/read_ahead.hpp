// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "input/byte_source.hpp"

namespace millrace::preprocess {

/// What another source gives, read on a thread of its own, at most `chunks` of `chunk_bytes` ahead
/// of the reader. Errors come in their place, behind what precedes them.
///
/// The destructor stops the thread and joins it, whether or not all was read: promptly, for the
/// inner source is cancelled, too.
class read_ahead final : public byte_source {
 public:
  static constexpr std::size_t chunks = 4;
  static constexpr std::size_t chunk_bytes = std::size_t{1} << 20;

  explicit read_ahead(std::unique_ptr<byte_source> inner);
  read_ahead(const read_ahead&) = delete;
  read_ahead& operator=(const read_ahead&) = delete;
  ~read_ahead() override;

  std::size_t read(std::span<std::byte> out) override;
  std::uint64_t position_bytes() const noexcept override { return position_; }
  void cancel() noexcept override;

 private:
  struct chunk {
    std::vector<std::byte> bytes;
    std::size_t size = 0;
    std::uint64_t position = 0;  // of the inner source, behind this
    bool last = false;           // behind it is the end, or the error
  };

  void run() noexcept;
  bool fill(chunk& to);
  void next_chunk();

  std::unique_ptr<byte_source> inner_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<chunk> filled_;
  std::vector<chunk> free_;
  bool cancelled_ = false;

  std::exception_ptr failure_;  // the thread's; seen by the reader with the last chunk

  chunk current_;          // the reader's own from here on
  std::size_t given_ = 0;  // of current_
  std::uint64_t position_ = 0;

  std::thread thread_;
};

}  // namespace millrace::preprocess
