// SPDX-License-Identifier: Apache-2.0
#include "input/read_ahead.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace millrace::preprocess {

read_ahead::read_ahead(std::unique_ptr<byte_source> inner) : inner_(std::move(inner)) {
  free_.resize(chunks);
  thread_ = std::thread([this] { run(); });
}

read_ahead::~read_ahead() {
  cancel();
  thread_.join();
}

void read_ahead::cancel() noexcept {
  {
    const std::scoped_lock lock(mutex_);
    cancelled_ = true;
  }
  changed_.notify_all();
  inner_->cancel();
}

void read_ahead::run() noexcept {
  for (bool more = true; more;) {
    chunk next;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return cancelled_ || !free_.empty(); });
      if (cancelled_) return;
      next = std::move(free_.back());
      free_.pop_back();
    }
    try {
      more = fill(next);
    } catch (...) {
      failure_ = std::current_exception();
      more = false;
    }
    next.position = inner_->position_bytes();
    next.last = !more;
    {
      const std::scoped_lock lock(mutex_);
      filled_.push_back(std::move(next));
    }
    changed_.notify_all();
  }
}

// Reads until at least half of the chunk is filled. Does not wait for a full chunk, so that data
// from a slow pipe is soon available. Returns false at the end of the input.
bool read_ahead::fill(chunk& to) {
  to.size = 0;
  to.bytes.resize(chunk_bytes);
  while (to.size < chunk_bytes / 2) {
    const std::size_t n = inner_->read(std::span(to.bytes).subspan(to.size));
    if (n == 0) return false;
    to.size += n;
  }
  return true;
}

void read_ahead::next_chunk() {
  {
    std::unique_lock lock(mutex_);
    if (!current_.bytes.empty()) free_.push_back(std::move(current_));
    changed_.notify_all();
    changed_.wait(lock, [&] { return cancelled_ || !filled_.empty(); });
    if (filled_.empty()) {  // cancelled, so the caller ignores the result
      current_.last = true;
      current_.size = 0;
    } else {
      current_ = std::move(filled_.front());
      filled_.pop_front();
    }
  }
  given_ = 0;
  position_ = current_.position;
}

std::size_t read_ahead::read(std::span<std::byte> out) {
  while (given_ == current_.size) {
    if (current_.last) {
      if (failure_) std::rethrow_exception(failure_);
      return 0;
    }
    next_chunk();
  }
  const std::size_t n = std::min(out.size(), current_.size - given_);
  std::memcpy(out.data(), current_.bytes.data() + given_, n);
  given_ += n;
  return n;
}

}  // namespace millrace::preprocess
