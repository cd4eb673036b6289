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

/// Determines whether a failed open or read is retried, and how long to wait before the retry.
///
///   EINTR                                      always retried at once, and not counted
///   EAGAIN, EBUSY                              retried on every file system
///   EIO, ESTALE, ETIMEDOUT, ECONNRESET,        retried on a network file system
///   ECONNREFUSED, ECONNABORTED, ENOTCONN,      (`file_system_kind`), because the server may be
///   EPIPE, ENETDOWN, ENETUNREACH, ENETRESET,   restarting or the connection broken. After ESTALE,
///   EHOSTDOWN, EHOSTUNREACH, ENOLINK, ECOMM,   the file is reopened, and must be the same file as
///   EREMOTEIO, ENOBUFS                         before
///   all others                                 never retried; EIO of a local disk is permanent
///
/// Before the n-th retry, the longest wait is first_wait * 2^(n-1), but at most `most_wait`. The
/// actual wait is a random time from half of the longest wait to all of it, so that ranks that
/// failed together do not retry together. By default, a read that keeps failing is abandoned after
/// 0.8 to 1.6 s.
struct retry_policy {
  int attempts = 6;  ///< number of attempts in total, including the first one; 1: no retries
  std::chrono::milliseconds first_wait{50};
  std::chrono::milliseconds most_wait{2000};

  /// True if an operation that failed with `code` may succeed if it is retried.
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

  /// The time to wait before retry n; the first retry is number 1.
  /// @param random  a random number, uniform in [0, 1]
  std::chrono::microseconds wait_before(int n, double random) const noexcept {
    std::chrono::microseconds wait = first_wait;
    for (int i = 1; i < n && wait < most_wait; ++i) wait *= 2;
    wait = std::min<std::chrono::microseconds>(wait, most_wait);
    return std::chrono::microseconds(
        static_cast<std::int64_t>(static_cast<double>(wait.count()) * (0.5 + random / 2)));
  }
};

/// Counts the retries of one operation. The caller repeats the operation while the operation fails
/// and `again` returns true.
class retries {
 public:
  explicit retries(const retry_policy& policy) noexcept : policy_(policy) {}

  /// Returns whether to retry an operation that failed with `code`. Waits before it returns true.
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
