// SPDX-License-Identifier: Apache-2.0
#pragma once

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
#include <millrace/io/detail/mask_writer.hpp>

#include "output/checksum_writer.hpp"
#include "output/cut_points.hpp"
#include "output/dataset_paths.hpp"
#include "output/disk_room.hpp"
#include "output/provenance_writer.hpp"
#include "output/text_digests.hpp"

namespace millrace::preprocess {

/// Options of a dataset_writer.
struct dataset_options {
  formats::dtype type{};
  bool checksums = false;                            ///< write P.sum
  std::uint32_t sum_version = formats::sum_version;  ///< that of P.sum
  bool provenance = false;                           ///< write P.src
  bool quarantine = false;                           ///< write P.bad, if there are bad records
  bool mask = false;                                 ///< write P.mask
  /// Number of keys of the run, if P.cuts is to be written; otherwise 0.
  std::size_t cut_keys = 0;
  std::size_t cut_key = 0;  ///< the key of this dataset, for P.cuts
  bool digests = false;     ///< write P.digests
};

/// The progress of a dataset_writer. A later writer can resume from this state and the partial
/// files. It drops the bytes that were written to the files after this state was saved.
struct dataset_state {
  std::uint64_t bin_bytes = 0;
  std::uint64_t bad_bytes = 0;
  std::int64_t sequences = 0;
  std::int64_t documents = 0;
  std::int64_t empty_documents = 0;    ///< documents without sequences
  std::int64_t last_document_end = 0;  ///< number of sequences up to the end of the last document
  checksum_writer::state checksums;
  provenance_writer::state provenance;
  io::mask_state mask;

  /// Total size of the `.bin` and of the finished `.idx`.
  std::uint64_t output_bytes() const noexcept {
    return bin_bytes + formats::mmidx_header_bytes + 12 * static_cast<std::uint64_t>(sequences) +
           8 * (static_cast<std::uint64_t>(documents) + 1);
  }

  /// Returns this state with every count of bytes, sequences and documents multiplied by (1 +
  /// growth).
  dataset_state grown(double growth) const noexcept;
  /// Adds the counts of `more`. In the states of sidecars, changes only the counts.
  dataset_state& operator+=(const dataset_state& more) noexcept;
};
static_assert(std::is_trivially_copyable_v<dataset_state>);

/// What identifies the finished sidecars of a dataset.
struct dataset_roots {
  std::string sum;   ///< root of P.sum in hexadecimal; empty if there is none
  std::string mask;  ///< root of P.mask, as well
};

/// Writes a `.bin`, its `.idx` and its sidecars sequentially, in constant memory.
///
/// Lengths are written to their final place in the `.idx`, after the header. Document ends go to a
/// temporary file, because their place is known only after all sequences were written. Pointers are
/// computed from the lengths at the end. No file has its final name before publish_dataset(). The
/// destructor removes all files, unless keep() was called. Only sync() is thread-safe.
class dataset_writer {
 public:
  /// @throws io_error  the folder does not exist or is not writable, or another process is writing
  ///                   this dataset.
  dataset_writer(const std::filesystem::path& prefix, const dataset_options& options);

  /// Resumes where another writer stopped.
  ///
  /// @throws config_error  the partial files no longer exist.
  dataset_writer(const std::filesystem::path& prefix, const dataset_options& options,
                 const dataset_state& from);

  /// Appends sequences and the ends of documents.
  ///
  /// @param ids            the tokens of the sequences, concatenated
  /// @param lengths        number of tokens in each sequence
  /// @param document_ends  for each document, the number of sequences between the start of this
  ///                       call and the end of the document; ascending. The number may include
  ///                       sequences that later calls append.
  /// @throws io_error  a file cannot be written, for example because the disk is full.
  void append(std::span<const std::byte> ids, std::span<const std::int32_t> lengths,
              std::span<const std::int64_t> document_ends);

  /// Appends the source places of the next documents. Does nothing without P.src.
  void append_places(std::span<const formats::source_place> places);

  /// Appends the bits [first, last): those of the next tokens. Does nothing without P.mask.
  /// finish() expects as many bits as tokens.
  void append_mask(const formats::bit_span& bits, std::uint64_t first, std::uint64_t last);

  /// Appends what the run has read and written before the next document, or, before finish(), in
  /// all. The next append() writes it to the file. Does nothing without P.cuts.
  void append_cut(const cut_point& point);

  /// Appends the digests of the texts of the next documents. Call this before append() appends the
  /// documents. Does nothing without P.digests.
  void append_digests(std::span<const text_digest> digests);

  /// Appends a complete line to P.bad. Has no effect if the dataset has no P.bad.
  void append_bad(std::string_view line);

  /// Makes the destructor keep the partial files, for a later writer.
  void keep() noexcept;
  /// Undoes keep().
  void forget() noexcept;

  dataset_state state() const noexcept;

  /// Takes back the sequences that were appended after the state `to` was saved.
  ///
  /// @pre no document end, source place, digest or bad record was appended since then
  void go_back(const dataset_state& to);

  /// The purpose for which a dataset is written.
  enum class role : std::uint8_t {
    whole,  ///< a complete dataset with its index
    part,   ///< to be joined with other parts; its index stays incomplete
  };

  /// Appends one claim per file to `to`: the size of the file when the dataset has the counts in
  /// `grown`. Leaves out P.meta, which is small.
  ///
  /// @param names_bytes  total size of the names of the inputs in P.src
  void claim(const dataset_state& grown, role as, std::uint64_t names_bytes,
             std::vector<room_claim>& to);

  /// Makes everything that was appended before the call durable. Another thread may call this
  /// during append().
  ///
  /// @throws io_error  fsync failed in this call or an earlier one. Data lost by a failed fsync
  ///                   stays lost, even if a later fsync succeeds.
  void sync();

  /// Completes only P.src, so that it can be read back. state() stays the same.
  ///
  /// @pre P.src exists, and neither this function nor finish() was called before
  /// @return the path of the file
  const std::filesystem::path& finish_places(std::span<const formats::src_input> inputs);

  /// Completes all files except P.meta, under their partial names.
  ///
  /// @param inputs  the inputs, for P.src
  dataset_roots finish(std::span<const formats::src_input> inputs);

  /// Writes P.meta, and makes all files durable under their partial names.
  void finish_meta(std::string_view json);

  /// The sidecars that the dataset has.
  sidecar_set sidecars() const noexcept;

  const dataset_paths& paths() const noexcept { return paths_; }
  /// Three files that can be read back before finish(). bin() contains the tokens. idx() contains
  /// space for the header, then the lengths. document_ends() contains one int64 per document: the
  /// number of sequences up to the end of the document.
  const io::atomic_file& bin() const noexcept { return bin_; }
  const io::atomic_file& idx() const noexcept { return idx_; }
  const io::atomic_file& document_ends() const noexcept { return documents_spill_; }
  /// The bits of P.mask.
  /// @pre there is a P.mask, and the arguments are as for io::mask_writer::read
  formats::bit_buffer read_mask(std::uint64_t first, std::uint64_t count) const {
    return mask_->read(first, count);
  }
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
  std::optional<io::mask_writer> mask_;
  std::optional<cut_writer> cuts_;
  std::optional<digest_writer> digests_;
  std::optional<io::atomic_file> bad_;
  std::optional<io::atomic_file> meta_;
  std::int64_t sequences_ = 0;
  std::int64_t documents_ = 0;
  std::int64_t empty_documents_ = 0;
  std::int64_t last_document_end_ = 0;
  bool kept_ = false;
  bool sync_failed_ = false;
};

/// Gives the finished files of a dataset their final names: see io::publish_dataset().
///
/// @throws io_error  a rename or fsync failed.
void publish_dataset(const dataset_paths& paths, const sidecar_set& sidecars);

}  // namespace millrace::preprocess
