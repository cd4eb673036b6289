// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "output/run_progress.hpp"
#include "run/journal_file.hpp"

namespace millrace::preprocess {

/// All settings of a run that affect its output, as names and values. A run may resume another only
/// if they are equal.
using run_identity = std::vector<std::pair<std::string, std::string>>;

/// Facts about an input from the file system. If the stamp of an input is unchanged, its text is
/// too. All zero for a pipe.
struct input_stamp {
  /// The change time for journals of version 3, which do not record it.
  static constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::min();

  std::uint64_t size_bytes = 0;  ///< on disk
  std::int64_t modified_nanoseconds = 0;
  /// Time of the last inode change. `cp -p` and `touch -r` restore the modification time; no
  /// program can set this one.
  std::int64_t changed_nanoseconds = 0;
  bool operator==(const input_stamp&) const = default;
};

/// The first difference, as `name: first, then second`; nothing if they are equal.
std::optional<std::string> difference(const run_identity& was, const run_identity& is);

/// PREFIX.journal: the durable progress of a run. One process holds it at a time, with a lock that
/// ends with the process.
///
///   record   u32 bytes of the payload, u32 CRC-32C of the payload, payload
///   payload  one letter: i identity, t stamps of the inputs, s state, f finished; then its fields
///
/// Incomplete records, left by a kill, are ignored. Numbers have the byte order of the machine that
/// wrote them, because no other machine resumes from it. For one thread at a time.
class journal {
 public:
  enum class start : std::uint8_t {
    afresh,  ///< ignore the contents; clear() removes them
    go_on,   ///< use the contents
  };

  /// Opens or creates it.
  ///
  /// @throws io_error      the folder is not writable.
  /// @throws config_error  another process holds it; or, with go_on, another version wrote it.
  journal(const std::filesystem::path& output_prefix, start how);

  /// Identity in the journal at `path`, which another process may hold; nothing if it is
  /// unreadable.
  static std::optional<run_identity> identity_in(const std::filesystem::path& path);

  /// Identity of the earlier run; nothing if there was none.
  const std::optional<run_identity>& identity() const noexcept { return identity_; }
  /// Stamps of its inputs when it began, or when a later run last compared them.
  const std::vector<input_stamp>& stamps() const noexcept { return stamps_; }
  /// Its last durable state; nothing if there was none.
  const std::optional<run_progress>& state() const noexcept { return state_; }
  /// Set if all its files were complete, but perhaps without their final names.
  const std::optional<std::vector<sidecar_set>>& finished() const noexcept { return finished_; }

  /// Removes the contents durably. Call it before the files that they describe are emptied.
  void clear();
  /// Begins a run in an empty journal. On return, the names of its existing files are durable.
  void begin(const run_identity& identity, const std::vector<input_stamp>& stamps);
  /// Replaces the stamps, after changed inputs were compared. Durable on return.
  /// @pre state()
  void renew_stamps(const std::vector<input_stamp>& stamps);
  /// Makes the names of files created after begin() durable, before the first write().
  void sync_names() { file_.sync_names(); }
  /// Call it when the outputs are durable up to `state`. Durable on return.
  void write(const run_progress& state);
  /// Removes the last state, and the progress in its current input. Durable on return, unless that
  /// is the first input: then state() is empty, but the file keeps the old state until clear(), and
  /// must not get new stamps before that.
  /// @param first  first input that the run reads
  void go_back(std::size_t first);
  /// Call it when all files are complete and durable under their partial names.
  void write_finished(const std::vector<sidecar_set>& sidecars);
  /// Removes the journal, if nothing of the run is worth keeping.
  void remove();
  /// The same after another error, which is the one to report. Errors here are ignored: the next
  /// run takes over what remains.
  void discard() noexcept;
  /// Removes the journal of a run whose outputs are published.
  /// @throws error  it cannot be removed; the message says that the output is complete.
  void remove_finished();

  const std::filesystem::path& path() const noexcept { return file_.path(); }

 private:
  void take(std::span<const std::byte> payload);

  journal_file file_;
  std::optional<run_identity> identity_;
  std::vector<input_stamp> stamps_;
  std::optional<run_progress> state_;
  std::optional<std::vector<sidecar_set>> finished_;
  std::size_t inputs_written_ = 0;  // of run_progress::inputs: those that will not change any more
};

}  // namespace millrace::preprocess
