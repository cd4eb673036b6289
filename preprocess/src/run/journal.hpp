// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "output/run_progress.hpp"
#include "run/journal_file.hpp"

namespace millrace::preprocess {

/// All settings of a run that affect its output, as names and values. A run may resume an earlier
/// run only if both have the same identity.
using run_identity = std::vector<std::pair<std::string, std::string>>;

/// What the file system reports about an input. If the stamp of an input has not changed, its text
/// has not changed either. For a pipe, all fields are zero.
struct input_stamp {
  std::uint64_t size_bytes = 0;  ///< size on disk
  std::int64_t modified_nanoseconds = 0;
  /// Time of the last inode change. Programs such as `cp -p` and `touch -r` can set the
  /// modification time, but no program can set this time.
  std::int64_t changed_nanoseconds = 0;
  bool operator==(const input_stamp&) const = default;
};

/// Describes the first difference between two identities: its name, the value in `was` and the
/// value in `is`. Returns nothing if the identities are equal.
std::optional<std::string> difference(const run_identity& was, const run_identity& is);

/// PREFIX.journal: the durable progress of a run. Only one process at a time can hold the journal:
/// it locks the file until the object is destroyed or the process ends.
///
///   record   u32 bytes of the payload, u32 CRC-32C of the payload, payload
///   payload  one letter for the kind of record, then the fields of that kind:
///            i identity, t stamps of the inputs, s state, f finished
///
/// An incomplete record, which a killed process may leave, is ignored. Numbers have the byte order
/// of the machine that wrote them, because only machines with that byte order resume from the
/// journal. Not thread-safe.
class journal {
 public:
  enum class start : std::uint8_t {
    afresh,  ///< ignore the contents; clear() removes them
    go_on,   ///< use the contents
  };

  /// Opens or creates the journal, and locks it.
  ///
  /// @throws io_error      the folder is not writable.
  /// @throws config_error  another process holds the journal, or `how` is `go_on` and an
  ///                       incompatible version of the program wrote the journal.
  journal(const std::filesystem::path& output_prefix, start how);

  /// Returns the identity in the journal at `path`, or nothing if the file cannot be read. Another
  /// process may hold that journal.
  static std::optional<run_identity> identity_in(const std::filesystem::path& path);

  /// The identity of the run that the journal describes; nothing if the journal is empty.
  const std::optional<run_identity>& identity() const noexcept { return identity_; }
  /// The stamps of that run's inputs, taken when the run began or when a resumed run last compared
  /// the inputs.
  const std::vector<input_stamp>& stamps() const noexcept { return stamps_; }
  /// The last durable state of that run; nothing if no state was written.
  const std::optional<run_progress>& state() const noexcept { return state_; }
  /// The sidecars of each dataset of that run. Set if all files of the run are complete, even if
  /// they do not have their final names yet.
  const std::optional<std::vector<sidecar_set>>& finished() const noexcept { return finished_; }

  /// Durably removes the contents. Call this before you empty the files that the contents describe.
  void clear();
  /// Begins a run in an empty journal. Also makes the names of the run's existing files durable.
  void begin(const run_identity& identity, const std::vector<input_stamp>& stamps);
  /// Replaces the stamps durably. Call this after changed inputs were compared.
  ///
  /// @pre state() is set
  void renew_stamps(const std::vector<input_stamp>& stamps);
  /// Makes durable the names of files that were created after begin(). Call this before the first
  /// write().
  void sync_names() { file_.sync_names(); }
  /// Writes a state durably. Call this only when the outputs are durable up to `state`.
  void write(const run_progress& state);
  /// Replaces the last state by the state at the start of its current input, so that the run reads
  /// that input again. The new state is durable when the function returns, with one exception: if
  /// the current input is the first input that the run reads, state() becomes empty, but the file
  /// keeps the old state until clear(). In this case, do not call renew_stamps() before clear().
  ///
  /// @param first  index of the first input that the run reads
  void go_back(std::size_t first);
  /// Records that all files are complete and durable under their partial names. Call this only when
  /// that is true.
  void write_finished(const std::vector<sidecar_set>& sidecars);
  /// Removes the journal. Call this if nothing of the run is worth keeping.
  void remove();
  /// Removes the journal of a run that fails. Ignores errors of the removal, because the user must
  /// see the error that ended the run. If the journal remains, the next run can use it.
  void discard() noexcept;
  /// Removes the journal of a run whose outputs have their final names.
  ///
  /// @throws error  the journal cannot be removed; the message says that the output is complete.
  void remove_finished();

  const std::filesystem::path& path() const noexcept { return file_.path(); }

 private:
  void take(std::span<const std::byte> payload);

  journal_file file_;
  std::optional<run_identity> identity_;
  std::vector<input_stamp> stamps_;
  std::optional<run_progress> state_;
  std::optional<std::vector<sidecar_set>> finished_;
  std::size_t inputs_written_ = 0;  // number of inputs whose final totals were written
};

}  // namespace millrace::preprocess
