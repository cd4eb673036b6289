// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/formats/dtype.hpp>
#include <millrace/io/atomic_file.hpp>
#include <millrace/io/detail/mask_writer.hpp>
#include <millrace/meta/dataset_meta.hpp>

#include "output/checksum_writer.hpp"
#include "output/dataset_paths.hpp"
#include "output/disk_room.hpp"
#include "output/provenance_writer.hpp"
#include "process/stop_flag.hpp"

namespace millrace::preprocess {

/// The type and size of a sized_dataset, known in advance.
struct sized_layout {
  formats::dtype type{};
  std::uint64_t sequences = 0;
  std::uint64_t documents = 0;
  std::uint64_t bin_bytes = 0;
  bool multimodal = false;
  std::optional<std::uint32_t> checksums =
      std::nullopt;         ///< the version of P.sum; empty without one
  bool provenance = false;  ///< the dataset has a P.src
  bool mask = false;        ///< the dataset has a P.mask
  bool bad = false;         ///< the dataset has a P.bad, if a line is appended to it
  bool duplicates = false;  ///< the dataset has a P.duplicates, if a line is appended to it
};

/// Maximum sizes of the files whose sizes no layout tells.
struct unsure_bytes {
  std::uint64_t src = 0;
  std::uint64_t meta = 0;
  std::uint64_t bad = 0;
  std::uint64_t duplicates = 0;
};

/// Writes a dataset document by document. Its counts are known in advance, so each array of the
/// `.idx` is written directly to its place. No file has its final name before finish() returns. If
/// finish() is not called, the destructor removes all files. Not thread-safe.
class sized_dataset {
 public:
  /// Opens the files.
  ///
  /// @throws io_error  the folder is not writable, or another process is writing this dataset.
  sized_dataset(const std::filesystem::path& prefix, const sized_layout& layout,
                stop_flag stop = {});

  const dataset_paths& paths() const noexcept { return paths_; }

  /// The space that all files will take.
  ///
  /// @param most  maximum sizes of the files whose sizes are not known; 0 for a file that is not
  ///              written
  std::vector<room_claim> claims(const unsure_bytes& most);

  /// Sets the size of the `.idx`. Call this once, before the first append().
  ///
  /// @throws io_error  the size cannot be set.
  void begin();

  /// Appends tokens of the next document.
  ///
  /// @throws io_error  a file cannot be written, as in all functions that append.
  /// @throws stopped   `stop` is set. It is checked every few MiB, also in finish().
  void append_tokens(std::span<const std::byte> tokens);
  /// Appends bits of the next document to P.mask, if there is one.
  void append_mask(const formats::bit_span& bits, std::uint64_t first, std::uint64_t last);
  /// Ends a document, of which all tokens and bits were appended.
  ///
  /// @param lengths  of its sequences
  /// @param modes    one per sequence, or empty
  /// @param place    for P.src, if there is one
  void end_document(std::span<const std::int32_t> lengths, std::span<const std::int8_t> modes,
                    const formats::source_place& place);

  /// The P.bad, to which lines are appended.
  /// @pre the layout has it
  io::atomic_file& bad() noexcept { return *bad_; }
  /// Appends a line to P.duplicates.
  /// @pre the layout has it
  void append_duplicate(std::string_view line);

  /// Completes all files, makes them durable and gives them their final names.
  ///
  /// @param inputs  the inputs, for P.src
  /// @param meta    contents of P.meta without the number of trained tokens and the roots of
  ///                sidecars, which this function adds
  /// @throws io_error  a file cannot be written, for example because the disk is full, or the
  ///                   documents do not match the layout.
  void finish(std::span<const formats::src_input> inputs,
              std::optional<formats::dataset_meta>& meta);

 private:
  /// An array of the `.idx`, written sequentially.
  struct column {
    std::uint64_t offset;
    std::vector<std::byte> pending = {};
  };
  void put(column& to, std::span<const std::byte> bytes);
  void flush(column& to);
  void append_bits();
  void append_places();
  void append_duplicates();
  void write(std::span<const std::byte> tokens);

  sized_layout layout_;
  stop_flag stop_;
  std::uint64_t idx_bytes_;
  dataset_paths paths_;
  io::atomic_file bin_;
  io::atomic_file idx_;
  std::optional<checksum_writer> checksums_;
  std::optional<provenance_writer> provenance_;
  std::optional<io::mask_writer> mask_;
  std::optional<io::atomic_file> bad_;
  std::optional<io::atomic_file> duplicates_;
  column lengths_;
  column pointers_;
  column documents_;
  column modes_;
  std::vector<std::byte> tokens_;  // tokens not yet written: small documents are written together
  std::vector<formats::source_place> places_;  // places not yet passed to provenance_
  formats::bit_buffer bits_;                   // bits not yet passed to mask_
  std::string duplicate_lines_;                // lines not yet written to duplicates_
  std::int64_t pointer_ = 0;
  std::int64_t sequences_ = 0;
  std::uint64_t document_count_ = 0;
};

}  // namespace millrace::preprocess
