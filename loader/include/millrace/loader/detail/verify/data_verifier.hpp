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

/// Compares served data with the checksums in PREFIX.sum and with the vocabulary. Call, in this
/// order:
///
///   touch(ranges)            when reads are announced: checks the blocks that are in memory
///   read the sample, then
///   check(requests, sample)  before the sample is served: throws if the sample is bad
///
/// Each block of 1 MiB is checked once, by the first thread that needs it. After that, checking a
/// sample only looks up one byte per block that the sample touches. If one of these blocks is
/// unchecked or bad, the sample's own tokens are checked, so that no id outside the vocabulary is
/// ever served.
///
/// The verifier never skips a sample. Ranks may find a bad block at different times, or only on
/// some disks, so with skipping they would no longer serve the same run. To remove a bad block's
/// documents from the run, start all ranks with the edits of `quarantine`.
///
/// Thread-safe. Data files and `.sum` files are opened when they are first needed.
class MILLRACE_EXPORT data_verifier {
 public:
  /// @param files  the data files; `file_range::file` is an index in this list
  /// @param table  the readers' table of open files, so that the checks see the same files as the
  ///               readers; null: the process's table
  /// @throws config_error  an option is out of range
  data_verifier(const std::vector<verified_file>& files, const verify_options& options,
                std::shared_ptr<open_files> table = nullptr);
  data_verifier(const data_verifier&) = delete;
  data_verifier& operator=(const data_verifier&) = delete;
  ~data_verifier() {
    if (scrubber_ && home_.is_here()) scrubber_->remove(core_.get());
  }

  /// Mode first_touch: checks those blocks of the ranges that are in memory. In other modes it does
  /// nothing. Errors are ignored here; `check` reports them later.
  void touch(std::span<const file_range> ranges) noexcept;

  /// Checks the bytes that were read for a sample.
  ///
  /// @param requests  the completed reads
  /// @param sample    position of the sample in the run, for error messages; -1: unknown
  /// @throws format_error  a token is not a valid id; a `.sum` is invalid or belongs to another
  ///                       dataset; or, under the policy `fail`, a checksum does not match: that of
  ///                       a block of the sample, or of a block that was served earlier
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
  // A block counts as in memory if at least this share of it is. The rest costs a read or two.
  static constexpr double mostly = 0.9;
  [[noreturn]] static void refuse(const finding& found, std::int64_t sample);

  home_process home_;
  std::shared_ptr<detail::verify_core> core_;
  std::shared_ptr<scrubber> scrubber_;  // null: no background checks
};

}  // namespace millrace::loader
