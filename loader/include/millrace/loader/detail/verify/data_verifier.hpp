// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>
#include <millrace/loader/detail/verify/scrubber.hpp>
#include <millrace/loader/detail/verify/verify_core.hpp>

namespace millrace::loader {

/// Holds what is served against the checksums in PREFIX.sum and against the vocabulary.
///
///   touch(ranges)            W samples ahead: blocks that are in memory are checked now
///   gather, then
///   check(requests, sample)  before the sample is served: throws, or nothing
///
/// Blocks of 1 MiB are checked once, by whoever comes first; from then on a sample costs a look at
/// a byte for each block that it lies in. Tokens are looked at in the sample itself as long as its
/// block was not checked, so that no id outside the vocabulary is ever served.
///
/// What it never does is leave a sample out: ranks that find a bad block at different times, or on
/// different disks, would no longer serve the same run. Whoever wants its documents out of the run
/// takes the edits of `quarantine` and starts all ranks with them.
///
/// Any thread, also several at once. Files and their `.sum` are opened when they are first needed.
class MILLRACE_EXPORT data_verifier {
 public:
  /// @param files  in the order of the reader's, by which ranges name them
  /// @param table  of the readers, whose files are those that are checked; null: the process's
  /// @throws config_error  an option is out of range
  data_verifier(const std::vector<verified_file>& files, const verify_options& options,
                std::shared_ptr<open_files> table = nullptr);
  data_verifier(const data_verifier&) = delete;
  data_verifier& operator=(const data_verifier&) = delete;
  ~data_verifier() {
    if (scrubber_) scrubber_->remove(core_.get());
  }

  /// Checks blocks that will be needed, as far as they are in memory and the mode is first_touch.
  /// What goes wrong is found again by `check`.
  void touch(std::span<const file_range> ranges) noexcept;

  /// Looks at what was gathered for a sample.
  ///
  /// @param requests  filled
  /// @param sample    its position in the run, for the message; -1: not known
  /// @throws format_error  a block that it lies in, or one that was served before, is not as it was
  ///                       written (where the policy is `fail`); a token is no id; a `.sum` is
  ///                       none, or is of another dataset
  /// @throws io_error      a block cannot be read
  void check(std::span<const read_request> requests, std::int64_t sample);

  verify_report report() const { return core_->report(); }

 private:
  void check_range(const file_range& range, const std::byte* bytes, std::int64_t sample);
  block_state look_at(std::size_t file, std::uint64_t block, std::int64_t sample);
  void check_tokens(const checked_file& in, const file_range& range, const std::byte* bytes,
                    std::int64_t sample) const;
  bool in_memory(const io::unique_fd& fd, const checked_file& in, std::uint64_t block) const;
  void leave(std::size_t file, std::uint64_t block, std::int64_t sample);
  static constexpr double mostly = 0.9;  // of a block: the rest is a read or two
  [[noreturn]] static void refuse(const finding& found, std::int64_t sample);

  std::shared_ptr<detail::verify_core> core_;
  std::shared_ptr<scrubber> scrubber_;  // null: nothing is scrubbed
};

}  // namespace millrace::loader
