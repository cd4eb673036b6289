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

/// The job is over on all ranks, and has been told of: what remains is to exit.
class job_ended : public std::exception {
 public:
  explicit job_ended(int status) : status_(status) {}
  int status() const noexcept { return status_; }
  const char* what() const noexcept override { return "the job has ended"; }

 private:
  int status_;
};

/// The processes of one MPI job, as one of them sees them. For its main thread.
///
/// What waits for others sleeps between two looks: the processor is for those who still work.
class rank_group {
 public:
  /// MPI_Init.
  /// @param program  for messages
  rank_group(std::string program, int* argc, char*** argv);
  rank_group(const rank_group&) = delete;
  rank_group& operator=(const rank_group&) = delete;
  /// MPI_Finalize.
  ~rank_group();

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  /// Rank 0: it alone talks to the user, and keeps the journal.
  bool is_first() const noexcept { return rank_ == 0; }
  /// Numbers of ranks, this one included.
  struct neighbor_count {
    int on_machine = 1;     ///< of this machine
    int on_same_cores = 1;  ///< of these, those that may run on exactly the cores of this rank
  };
  /// Collective: all ranks have to call it together.
  neighbor_count count_neighbors() const;

  /// Runs a step on every rank, and goes on when all have done it. If one or several have failed,
  /// rank 0 tells why in one sentence, the first one's, and all ranks end.
  ///
  /// @throws job_ended  on all ranks, if the step threw on any
  void together(const std::function<void()>& step);

  /// From rank 0 to all.
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

  /// Of all ranks, in their order, to rank 0; nothing to the others.
  template <class T>
  std::vector<T> gather(std::span<const T> mine) requires std::is_trivially_copyable_v<T> {
    const std::vector<std::byte> bytes = gather_bytes(std::as_bytes(mine));
    std::vector<T> all(bytes.size() / sizeof(T));
    std::ranges::copy(bytes, std::as_writable_bytes(std::span(all)).begin());
    return all;
  }

  /// What the ranks before this one have together: MPI_Exscan.
  dataset_extent before(const dataset_extent& mine) const;
  /// What all have together.
  dataset_extent total(const dataset_extent& mine) const;
  double total(double mine) const;
  std::uint64_t most(std::uint64_t mine) const;

  /// A short message to another rank. It is on its way on return.
  template <class T>
  void send(int to, const T& message) const requires std::is_trivially_copyable_v<T> {
    send_bytes(to, std::as_bytes(std::span(&message, 1)));
  }
  /// The next message of a rank, if there is one; -1: of any.
  template <class T>
  std::optional<T> receive(int from,
                           int* sender = nullptr) const requires std::is_trivially_copyable_v<T> {
    T message;
    if (!receive_bytes(from, std::as_writable_bytes(std::span(&message, 1)), sender)) {
      return std::nullopt;
    }
    return message;
  }

  /// Ends all ranks at once, without a word to them: where one of them cannot go on.
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
