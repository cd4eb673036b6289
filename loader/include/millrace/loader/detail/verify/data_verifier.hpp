// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>
#include <millrace/loader/detail/memory/home_process.hpp>
#include <millrace/loader/detail/verify/scrubber.hpp>
#include <millrace/loader/detail/verify/verify_core.hpp>

namespace millrace::loader {

/// Checks served data against the checksums in PREFIX.sum and against the vocabulary.
///
///   touch(ranges)            when reads are announced: checks the blocks that are in memory
///   gather, then
///   check(requests, sample)  before the sample is served: throws if it is bad
///
/// Each block of 1 MiB is checked once, by the first thread that needs it. After that, a sample
/// costs one byte lookup per block that it touches. While a block is unchecked, the tokens of the
/// sample itself are checked, so that no id outside the vocabulary is ever served.
///
/// A sample is never skipped: ranks that find a bad block at different times, or on different
/// disks, would no longer serve the same run. To remove its documents from the run, start all ranks
/// with the edits of `quarantine`.
///
/// Thread-safe. Files and their `.sum` are opened when they are first needed.
class MILLRACE_EXPORT data_verifier {
 public:
  /// @param files  in the reader's order; the file numbers of ranges are indices in this list
  /// @param table  the readers' table of open files, so that the files checked are those that they
  ///               read; null: the table of the process
  /// @throws config_error  an option is out of range
  data_verifier(const std::vector<verified_file>& files, const verify_options& options,
                std::shared_ptr<open_files> table = nullptr);
  data_verifier(const data_verifier&) = delete;
  data_verifier& operator=(const data_verifier&) = delete;
  ~data_verifier() {
    if (scrubber_ && home_.is_here()) scrubber_->remove(core_.get());
  }

  /// Checks blocks that will be needed, if they are in memory and the mode is first_touch. Errors
  /// are ignored here; `check` reports them later.
  void touch(std::span<const file_range> ranges) noexcept;

  /// Checks the bytes that were gathered for a sample.
  ///
  /// @param requests  the completed reads
  /// @param sample    position of the sample in the run, for the message; -1: not known
  /// @throws format_error  a block of the sample, or a block that was served before, does not match
  ///                       its checksum (if the policy is `fail`); a token is not a valid id; a
  ///                       `.sum` is invalid, or belongs to another dataset
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
  static constexpr double mostly = 0.9;  // share of a block; the rest is a read or two
  [[noreturn]] static void refuse(const finding& found, std::int64_t sample);

  home_process home_;
  std::shared_ptr<detail::verify_core> core_;
  std::shared_ptr<scrubber> scrubber_;  // null: nothing is scrubbed
};

}  // namespace millrace::loader
