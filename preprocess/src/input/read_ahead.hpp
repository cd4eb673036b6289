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

/// Reads an inner source on a separate thread, at most `chunks` chunks of `chunk_bytes` ahead of
/// the caller of read(). If the inner source throws, read() throws the same error after it has
/// returned all bytes before the error.
///
/// The destructor stops and joins the thread, whether or not everything was read. It first cancels
/// the inner source, so that the thread ends soon.
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
    std::uint64_t position = 0;  // position of inner_ after this chunk
    bool last = false;           // after this chunk, the inner source ended or failed
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

  std::exception_ptr failure_;  // set by the thread; read after the last chunk

  chunk current_;          // only read() uses `current_`, `given_` and `position_`
  std::size_t given_ = 0;  // bytes of current_ already returned
  std::uint64_t position_ = 0;

  std::thread thread_;
};

}  // namespace millrace::preprocess
