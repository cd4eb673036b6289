// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <random>
#include <thread>

#include <millrace/loader/detail/io/file_system.hpp>

namespace millrace::loader {

/// When a failed open or read is tried again, and how long after.
///
///   EINTR                                      at once, without end, and not counted
///   EAGAIN, EBUSY                              on every file system
///   EIO, ESTALE, ETIMEDOUT, ECONNRESET,        where the file lies on a network
///   ECONNREFUSED, ECONNABORTED, ENOTCONN,      (`file_system_kind`): a server that restarts, a
///   EPIPE, ENETDOWN, ENETUNREACH, ENETRESET,   connection that breaks. A file with ESTALE is
///   opened EHOSTDOWN, EHOSTUNREACH, ENOLINK, ECOMM,   anew, and has to be the same file as before
///   EREMOTEIO, ENOBUFS
///   all else                                   never; EIO of a local disk stays
///
/// Before the n-th repetition it waits for a random part, between half and all, of
/// first_wait * 2^(n-1), at most most_wait: ranks that failed together do not come back together.
/// By default a read that keeps failing is given up after 0.8 to 1.6 s.
struct retry_policy {
  int attempts = 6;  ///< in all, the first one included; 1 repeats nothing
  std::chrono::milliseconds first_wait{50};
  std::chrono::milliseconds most_wait{2000};

  /// Whether an operation that failed with `code` may succeed later.
  static bool may_pass(int code, file_system_kind kind) noexcept {
    switch (code) {
      case EAGAIN:
      case EBUSY:
        return true;
      case EIO:
      case ESTALE:
      case ETIMEDOUT:
      case ECONNRESET:
      case ECONNREFUSED:
      case ECONNABORTED:
      case ENOTCONN:
      case EPIPE:
      case ENETDOWN:
      case ENETUNREACH:
      case ENETRESET:
      case EHOSTDOWN:
      case EHOSTUNREACH:
      case ENOLINK:
      case ECOMM:
      case EREMOTEIO:
      case ENOBUFS:
        return kind == file_system_kind::network;
      default:
        return false;
    }
  }

  /// How long to wait before repetition n, from 1 on.
  /// @param random  evenly from 0 to 1
  std::chrono::microseconds wait_before(int n, double random) const noexcept {
    std::chrono::microseconds wait = first_wait;
    for (int i = 1; i < n && wait < most_wait; ++i) wait *= 2;
    wait = std::min<std::chrono::microseconds>(wait, most_wait);
    return std::chrono::microseconds(
        static_cast<std::int64_t>(static_cast<double>(wait.count()) * (0.5 + random / 2)));
  }
};

/// Goes through the attempts of one operation: `while` it failed and `again(...)`, repeat it.
class retries {
 public:
  explicit retries(const retry_policy& policy) noexcept : policy_(policy) {}

  /// Whether to repeat what failed with `code`; if so, after having waited.
  bool again(int code, file_system_kind kind) {
    if (done_ + 1 >= policy_.attempts || !retry_policy::may_pass(code, kind)) return false;
    static thread_local std::minstd_rand random{std::random_device{}()};
    ++done_;
    std::this_thread::sleep_for(
        policy_.wait_before(done_, std::generate_canonical<double, 24>(random)));
    return true;
  }

  int done() const noexcept { return done_; }

 private:
  const retry_policy& policy_;
  int done_ = 0;
};

}  // namespace millrace::loader
