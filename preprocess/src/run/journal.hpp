// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "output/run_state.hpp"
#include "run/journal_file.hpp"

namespace millrace::preprocess {

/// Everything that a run was told and that shows in its output, as names and values: a run may only
/// go on with one that was told the same.
using run_identity = std::vector<std::pair<std::string, std::string>>;

/// What the file system says of an input. An input whose stamp is unchanged need not be read to
/// know that its text is unchanged. All zero for a pipe.
struct input_stamp {
  /// The change time in journals of version 3, which do not have it.
  static constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::min();

  std::uint64_t size_bytes = 0;  ///< on disk
  std::int64_t modified_nanoseconds = 0;
  /// When the inode changed last. `cp -p` and `touch -r` restore the modification time; no program
  /// can set this one.
  std::int64_t changed_nanoseconds = 0;
  bool operator==(const input_stamp&) const = default;
};

/// The first entry in which two differ, as `name: first, then second`; nothing if they are equal.
std::optional<std::string> difference(const run_identity& was, const run_identity& is);

/// PREFIX.journal: what a stopped run has made safe. One process has it at a time, by a lock that
/// ends with the process.
///
///   record   u32 bytes of the payload, u32 CRC-32C of the payload, payload
///   payload  one letter: i identity, t stamps of the inputs, s state, f finished; then its fields
///
/// A record counts when all of it is there: what a kill cut off is passed over. Numbers are those
/// of the machine that wrote it, for no other will go on with it. For one thread at a time.
class journal {
 public:
  enum class start : std::uint8_t {
    afresh,  ///< whatever it says; clear() forgets that
    go_on,   ///< with what it says
  };

  /// Opens or creates it.
  ///
  /// @throws io_error      the folder refuses.
  /// @throws config_error  another process has it; to go on: it was written by another version.
  journal(const std::filesystem::path& output_prefix, start how);

  /// Of the journal at `path`, which another process may have; nothing if there is none to read.
  static std::optional<run_identity> identity_in(const std::filesystem::path& path);

  /// What an earlier run left; nothing if that was nothing.
  const std::optional<run_identity>& identity() const noexcept { return identity_; }
  /// The stamps of its inputs when it began, or when a later run last compared them.
  const std::vector<input_stamp>& stamps() const noexcept { return stamps_; }
  /// Its last safe state; nothing if it had none.
  const std::optional<run_state>& state() const noexcept { return state_; }
  /// All its files were whole, but perhaps not yet under their final names.
  const std::optional<std::vector<sidecar_set>>& finished() const noexcept { return finished_; }

  /// Forgets all that, safely. Call it before the files that it speaks of are emptied.
  void clear();
  /// Begins a run in a journal that says nothing. The names of its files, if they are there, are
  /// safe on return.
  void begin(const run_identity& identity, const std::vector<input_stamp>& stamps);
  /// Replaces the stamps, after the inputs that changed were compared. Safe on return.
  /// @pre state()
  void renew_stamps(const std::vector<input_stamp>& stamps);
  /// Makes the names of files safe that came after begin(), before the first write().
  void sync_names() { file_.sync_names(); }
  /// Call it when the outputs are safe up to `state`. Safe itself on return.
  void write(const run_state& state);
  /// Forgets the last state, and what was read of the input that it is in. Safe on return, unless
  /// that input is the first one: then there is no state(), but the file holds the old one until
  /// clear(), and must get no new stamps before that.
  /// @param first  of the inputs that the run is to read
  void go_back(std::size_t first);
  /// Call it when all files are whole and safe under their partial names.
  void write_finished(const std::vector<sidecar_set>& sidecars);
  /// Nothing of the run is worth keeping.
  void remove();
  /// The same where another error ends the run. That error is the one to report, so this one is
  /// dropped: the next run takes over what stays.
  void discard() noexcept;
  /// Removes the journal of a run whose outputs are published.
  /// @throws error  it cannot be removed; says that the output is complete nevertheless.
  void remove_finished();

  const std::filesystem::path& path() const noexcept { return file_.path(); }

 private:
  void take(std::span<const std::byte> payload);

  journal_file file_;
  std::optional<run_identity> identity_;
  std::vector<input_stamp> stamps_;
  std::optional<run_state> state_;
  std::optional<std::vector<sidecar_set>> finished_;
  std::size_t inputs_written_ = 0;  // of run_state::inputs: those that will not change any more
};

}  // namespace millrace::preprocess
