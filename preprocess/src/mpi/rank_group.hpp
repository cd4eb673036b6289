// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "merge/merged_layout.hpp"

namespace millrace::preprocess {

/// Thrown after the job ended on all ranks and printed the reason. The program should only exit
/// with status().
class job_ended : public std::exception {
 public:
  explicit job_ended(int status) : status_(status) {}
  int status() const noexcept { return status_; }
  const char* what() const noexcept override { return "the job has ended"; }

 private:
  int status_;
};

/// One MPI job with its processes (ranks), as seen by one rank. Use this class only on the main
/// thread.
///
/// While a rank waits for other ranks, it sleeps most of the time. This leaves the processor to the
/// ranks that work.
class rank_group {
 public:
  /// Calls MPI_Init_thread.
  ///
  /// @param program  name of the program, for messages
  rank_group(std::string program, int* argc, char*** argv);
  rank_group(const rank_group&) = delete;
  rank_group& operator=(const rank_group&) = delete;
  /// Calls MPI_Finalize.
  ~rank_group();

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  /// True on rank 0. Only rank 0 prints to the user and keeps the journal.
  bool is_first() const noexcept { return rank_ == 0; }
  /// Numbers of ranks that share the machine or the cores with this rank. Both include this rank.
  struct neighbor_count {
    int on_machine = 1;     ///< ranks on this machine
    int on_same_cores = 1;  ///< ranks on this machine with the same core affinity as this rank
  };
  /// Counts these ranks. Collective: all ranks must call this function.
  neighbor_count count_neighbors() const;

  /// Runs a step on every rank, and returns when all ranks have finished the step. If the step
  /// threw on any rank, the job ends on all ranks. Rank 0 then prints one message: of the ranks
  /// with the most serious kind of failure, the message of the first.
  ///
  /// @throws job_ended  on all ranks, if the step threw on any rank
  void together(const std::function<void()>& step);

  /// Broadcasts a value from rank 0 to all ranks.
  template <class T>
  void share(T& value) requires std::is_trivially_copyable_v<T> {
    share_bytes(std::as_writable_bytes(std::span(&value, 1)));
  }
  template <class T>
  void share(std::vector<T>& values) requires std::is_trivially_copyable_v<T> {
    std::uint64_t count = values.size();
    share(count);
    values.resize(count);
    share_bytes(std::as_writable_bytes(std::span(values)));
  }

  /// Gathers the values of all ranks on rank 0, in rank order. Returns an empty vector on other
  /// ranks.
  template <class T>
  std::vector<T> gather(std::span<const T> mine) requires std::is_trivially_copyable_v<T> {
    const std::vector<std::byte> bytes = gather_bytes(std::as_bytes(mine));
    std::vector<T> all(bytes.size() / sizeof(T));
    std::ranges::copy(bytes, std::as_writable_bytes(std::span(all)).begin());
    return all;
  }

  /// Returns the sum of the values of all lower ranks (MPI_Exscan).
  dataset_extent before(const dataset_extent& mine) const;
  /// total() returns the sum of the values of all ranks. most() returns the maximum.
  dataset_extent total(const dataset_extent& mine) const;
  double total(double mine) const;
  std::uint64_t most(std::uint64_t mine) const;

  /// Sends a short message to another rank. Returns when MPI no longer needs `message`.
  template <class T>
  void send(int to, const T& message) const requires std::is_trivially_copyable_v<T> {
    send_bytes(to, std::as_bytes(std::span(&message, 1)));
  }
  /// Returns the next message from rank `from`, or from any rank if `from` is -1. Returns nothing
  /// if no message has arrived.
  template <class T>
  std::optional<T> receive(int from,
                           int* sender = nullptr) const requires std::is_trivially_copyable_v<T> {
    T message;
    if (!receive_bytes(from, std::as_writable_bytes(std::span(&message, 1)), sender)) {
      return std::nullopt;
    }
    return message;
  }

  /// Ends the processes of all ranks at once. Call this on a rank that cannot continue.
  [[noreturn]] void abort(int status) const;

 private:
  void settle(int severity, const std::string& reason);
  void tell_first(std::span<const std::uint64_t> lengths, std::string_view reasons) const;
  void share_bytes(std::span<std::byte> bytes) const;
  std::vector<std::byte> gather_bytes(std::span<const std::byte> mine) const;
  void send_bytes(int to, std::span<const std::byte> bytes) const;
  bool receive_bytes(int from, std::span<std::byte> bytes, int* sender) const;

  std::string program_;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace millrace::preprocess
