// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <millrace/formats/dtype.hpp>
#include <millrace/formats/mmidx.hpp>
#include <millrace/formats/src.hpp>
#include <millrace/io/atomic_file.hpp>

#include "output/checksum_writer.hpp"
#include "output/dataset_paths.hpp"
#include "output/disk_room.hpp"
#include "output/provenance_writer.hpp"

namespace millrace::preprocess {

/// What a dataset_writer writes.
struct dataset_options {
  formats::dtype type{};
  bool checksums = false;   ///< P.sum
  bool provenance = false;  ///< P.src
  bool quarantine = false;  ///< P.bad, if there is anything to put into it
};

/// How far a dataset_writer is: with the partial files as they were then, all that it takes to go
/// on. Whatever the files hold behind it is dropped.
struct dataset_state {
  std::uint64_t bin_bytes = 0;
  std::uint64_t bad_bytes = 0;
  std::int64_t sequences = 0;
  std::int64_t documents = 0;
  checksum_writer::state checksums;
  provenance_writer::state provenance;

  /// Of the `.bin`, and of the `.idx` as it will be.
  std::uint64_t output_bytes() const noexcept {
    return bin_bytes + formats::mmidx_header_bytes + 12 * static_cast<std::uint64_t>(sequences) +
           8 * (static_cast<std::uint64_t>(documents) + 1);
  }

  /// Its counts of bytes, sequences and documents, each and so many times as much more.
  dataset_state grown(double growth) const noexcept;
  /// Adds these counts; checksums and codes stay.
  dataset_state& operator+=(const dataset_state& more) noexcept;
};
static_assert(std::is_trivially_copyable_v<dataset_state>);

/// Which sidecars a finished dataset has.
using sidecar_set = std::array<bool, all_sidecars.size()>;

/// Writes a `.bin`, its `.idx` and what lies beside them front to back, in constant memory.
///
/// Lengths go straight to their place in the `.idx`, behind the header; document ends
/// go to a spill file, because where they belong is known only when all sequences are; pointers
/// are computed from the lengths at the end. Nothing shows under the final names before
/// publish_dataset(). A destructor leaves no file, unless `keep()` was called. For one thread, but
/// for sync().
class dataset_writer {
 public:
  /// @throws io_error  the folder does not exist or refuses; another process writes this dataset.
  dataset_writer(const std::filesystem::path& prefix, const dataset_options& options);

  /// Goes on where another writer was.
  /// @throws config_error  the partial files are not there any more.
  dataset_writer(const std::filesystem::path& prefix, const dataset_options& options,
                 const dataset_state& from);

  /// Appends sequences and the ends of documents among them.
  ///
  /// @param ids            the sequences' tokens, one behind the other
  /// @param lengths        tokens of each sequence
  /// @param document_ends  for each document: how many sequences lie between the start of this
  ///                       call and its end (those may come in later calls); ascending
  /// @throws io_error  e.g. ENOSPC
  void append(std::span<const std::byte> ids, std::span<const std::int32_t> lengths,
              std::span<const std::int64_t> document_ends);

  /// Where the next documents come from; nothing if there is no P.src.
  void append_places(std::span<const formats::source_place> places);

  /// A whole line for P.bad; nothing if there is none.
  void append_bad(std::string_view line);

  /// Leaves the partial files to a later writer, whatever happens.
  void keep() noexcept;
  /// Removes them in the end, as if keep() had not been called.
  void forget() noexcept;

  dataset_state state() const noexcept;

  /// Takes back the sequences that were appended since.
  /// @pre no document, place or bad line was
  void go_back(const dataset_state& to);

  /// What becomes of a dataset.
  enum class role : std::uint8_t {
    whole,  ///< it is finished
    part,   ///< it is read back, and joined with others to a whole: its index stays incomplete
  };

  /// Appends the room that the files will take when as much is written as `grown` counts. P.meta,
  /// which is small, is left out.
  /// @param names_bytes  of the names of all inputs, in P.src
  void claim(const dataset_state& grown, role as, std::uint64_t names_bytes,
             std::vector<room_claim>& to);

  /// Makes durable what was appended before the call. From another thread too, while appends go on.
  /// @throws io_error  the kernel could not, in this call or in an earlier one: what it lost then
  /// is
  ///                   lost, whatever a later fsync says.
  void sync();

  /// Completes P.src alone, for who reads it back. What is saved of it stays as it is.
  /// @pre there is one, and neither this nor finish() was called before
  /// @return where it is
  const std::filesystem::path& finish_places(std::span<const std::string> inputs);

  /// Completes all files but P.meta under their partial names.
  /// @param inputs  names for P.src
  /// @return the root of P.sum in hexadecimal; empty without one
  std::string finish(std::span<const std::string> inputs);

  /// Writes P.meta, and makes all files durable under their partial names.
  void finish_meta(std::string_view json);

  /// What publish_dataset() will find.
  sidecar_set sidecars() const noexcept;

  const dataset_paths& paths() const noexcept { return paths_; }
  /// As they are before finish(): the tokens; the lengths, behind room for a header; and for each
  /// document the int64 of the sequences up to its end.
  const io::atomic_file& bin() const noexcept { return bin_; }
  const io::atomic_file& idx() const noexcept { return idx_; }
  const io::atomic_file& document_ends() const noexcept { return documents_spill_; }
  std::int64_t sequence_count() const noexcept { return sequences_; }
  std::int64_t document_count() const noexcept { return documents_; }
  std::int64_t token_count() const noexcept {
    return static_cast<std::int64_t>(bin_.size_bytes() / formats::size_bytes(options_.type));
  }

 private:
  dataset_writer(const std::filesystem::path& prefix, const dataset_options& options,
                 const dataset_state& from, io::atomic_file::start how);
  void write_pointers();
  void append_spill(const io::atomic_file& spill);
  template <class Work>
  void for_each_file(Work&& work);

  dataset_options options_;
  dataset_paths paths_;
  io::atomic_file bin_;
  io::atomic_file idx_;
  io::atomic_file documents_spill_;
  std::optional<checksum_writer> checksums_;
  std::optional<provenance_writer> provenance_;
  std::optional<io::atomic_file> bad_;
  std::optional<io::atomic_file> meta_;
  std::int64_t sequences_ = 0;
  std::int64_t documents_ = 0;
  bool kept_ = false;
  bool sync_failed_ = false;
};

/// Gives the finished files of a dataset their names. The old `.idx` goes first and the new one
/// comes last, so that a kill at any moment leaves the old dataset, the new one, or none; called
/// again after a kill, it does what is left. Old sidecars that the new dataset lacks go.
///
/// @throws io_error  a rename or fsync failed.
void publish_dataset(const dataset_paths& paths, const sidecar_set& sidecars);

}  // namespace millrace::preprocess
