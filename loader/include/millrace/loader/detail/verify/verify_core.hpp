// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/io/open_files.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>
#include <millrace/loader/detail/verify/checked_file.hpp>
#include <millrace/loader/detail/verify/stored_sums.hpp>
#include <millrace/loader/detail/verify/verify_options.hpp>
#include <millrace/loader/detail/verify/verify_report.hpp>

namespace millrace::loader {

/// A data file and the type of its tokens.
struct verified_file {
  data_file file;
  formats::dtype type = formats::dtype::uint16;
};

namespace detail {

/// The state that `data_verifier` and the scrubber share: the files, the states of their blocks,
/// and the findings. Thread-safe.
class MILLRACE_EXPORT verify_core {
 public:
  /// The files of a dataset: its `.bin` and, after its `.sum` was read, its `.idx`.
  struct source {
    source(std::shared_ptr<open_files> table, const verified_file& what);

    std::filesystem::path prefix;  ///< empty if the data file is not a `.bin`
    checked_file bin;
    std::unique_ptr<checked_file> idx;
    std::unique_ptr<const stored_sums> sums;
    std::mutex opening;
    std::atomic<bool> opened{false};  ///< once true, `idx` and `sums` no longer change
  };

  /// A request to check a block of a `.bin`. `sample` is the sample that needs the block; -1 if
  /// only a later sample will need it.
  struct wish {
    std::size_t file = 0;
    std::uint64_t block = 0;
    std::int64_t sample = -1;
  };

  verify_core(const std::vector<verified_file>& files, verify_options options,
              std::shared_ptr<open_files> table = open_files::of_process());

  const verify_options& options() const noexcept { return options_; }
  std::size_t size() const noexcept { return sources_.size(); }
  source& operator[](std::size_t file) noexcept { return *sources_[file]; }

  /// Reads a source's `.sum`, unless it was already read.
  /// @throws format_error, io_error  the `.sum` is invalid, belongs to another `.bin`, or cannot be
  ///                                 read
  void open(source& s);

  /// True if a source's blocks cannot be checked: there are neither checksums nor a vocabulary
  /// size.
  /// @pre `open` was called for the source
  bool is_unknown(const source& s) const noexcept {
    return s.sums == nullptr && options_.vocab_size == 0;
  }

  /// Checks a block that the caller has claimed, and settles the claim.
  /// @throws io_error  the block cannot be read; its state is then `unseen` again
  void check_claimed(std::size_t file, checked_file& in, std::uint64_t block, std::int64_t sample,
                     const io::unique_fd& fd, bool by_scrubber);

  /// Queues a block for the scrubber, without claiming or checking it.
  void leave(const wish& w);
  std::optional<wish> next_wish();
  bool has_wishes() const {
    const std::lock_guard lock(mutex_);
    return !wishes_.empty();
  }
  /// True if the scrubber may have missed a block that was left to it. The scrubber then needs one
  /// more pass.
  bool forgotten() const noexcept { return forgotten_; }
  void set_forgotten(bool value) noexcept { forgotten_ = value; }

  void add(finding what);
  /// Returns the fault of a bad block of a `.bin`.
  finding of_block(std::size_t file, std::uint64_t block) const;
  /// Returns the first finding of a bad checksum in a block that had already been served. Empty
  /// unless the policy is `fail`.
  std::optional<finding> served_bad() const;

  void set_scrubbed_all() noexcept { scrubbed_all_ = true; }
  bool scrubbed_all() const noexcept { return scrubbed_all_; }
  verify_report report() const;

 private:
  static constexpr std::size_t most_wishes = 4096;
  static constexpr std::size_t piece_bytes = std::size_t{128} << 10;  // fits in an L2 cache

  verify_options options_;
  std::shared_ptr<open_files> table_;
  std::vector<std::unique_ptr<source>> sources_;

  std::atomic<std::int64_t> touched_{0};
  std::atomic<std::int64_t> scrubbed_{0};
  std::atomic<std::int64_t> left_{0};
  std::atomic<std::int64_t> bad_{0};
  std::atomic<std::uint64_t> touch_ns_{0};
  std::atomic<std::uint64_t> scrub_ns_{0};
  std::atomic<bool> scrubbed_all_{false};
  std::atomic<bool> forgotten_{false};
  std::atomic<bool> any_served_bad_{false};

  mutable std::mutex mutex_;  // guards all members below
  std::deque<wish> wishes_;
  std::vector<finding> findings_;
  std::int64_t found_ = 0;
  std::map<std::pair<std::size_t, std::uint64_t>, finding> bad_blocks_;  // keys: file, block
  std::optional<finding> served_bad_;
  std::int64_t without_sum_ = 0;
  std::string first_without_sum_;
};

/// Returns the CPU time of the calling thread, in nanoseconds.
inline std::uint64_t thread_cpu_ns() noexcept {
  ::timespec now{};
  (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

/// Returns the calling thread's buffer for pieces of blocks. The buffer is reused, because a new
/// buffer would be zeroed each time.
inline std::span<std::byte> thread_buffer(std::size_t size_bytes) {
  thread_local std::vector<std::byte> buffer;
  if (buffer.size() < size_bytes) buffer.resize(size_bytes);
  return std::span(buffer).first(size_bytes);
}

}  // namespace detail
}  // namespace millrace::loader
