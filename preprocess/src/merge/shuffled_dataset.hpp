// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <millrace/formats/dtype.hpp>
#include <millrace/io/atomic_file.hpp>
#include <millrace/meta/dataset_meta.hpp>

#include "merge/shuffle_spill.hpp"
#include "output/checksum_writer.hpp"
#include "output/dataset_paths.hpp"
#include "output/disk_room.hpp"
#include "output/provenance_writer.hpp"
#include "process/stop_flag.hpp"

namespace millrace::preprocess {

/// The contents of a shuffled_dataset, known in advance.
struct shuffled_layout {
  formats::dtype type{};
  std::uint64_t sequences = 0;
  std::uint64_t documents = 0;
  std::uint64_t bin_bytes = 0;
  bool multimodal = false;
  bool checksums = false;   ///< P.sum
  bool provenance = false;  ///< P.src
};

/// Writes a dataset document by document. Its counts are known, so each array of the `.idx` is
/// written directly to its place. No file has its final name before finish() ends. Without
/// finish(), no file is left. For one thread.
class shuffled_dataset {
 public:
  /// Opens the files.
  /// @throws io_error  the folder is not writable, or another process writes this dataset.
  shuffled_dataset(const std::filesystem::path& prefix, const shuffled_layout& layout,
                   stop_flag stop = {});

  const dataset_paths& paths() const noexcept { return paths_; }

  /// The space that all files will take.
  /// @param src_bytes, meta_bytes  maximum sizes of P.src and P.meta; 0 for a file that is not
  ///                               written
  std::vector<room_claim> claims(std::uint64_t src_bytes, std::uint64_t meta_bytes);

  /// Gives the `.idx` its size. Call it once, before the first append().
  /// @throws io_error
  void begin();

  /// @throws io_error
  /// @throws stopped  `stop` is set; checked every few MiB, as in finish().
  void append(const spilled_document& document);

  /// Completes all files, makes them durable and gives them their final names.
  /// @param inputs  names for P.src
  /// @param meta    without the root of P.sum, which is filled in
  /// @throws io_error  for example, the disk is full; or the documents do not match the layout
  void finish(std::span<const std::string> inputs, std::optional<formats::dataset_meta>& meta);

 private:
  /// An array of the `.idx`, written sequentially.
  struct column {
    std::uint64_t offset;
    std::vector<std::byte> pending = {};
  };
  void put(column& to, std::span<const std::byte> bytes);
  void flush(column& to);
  void append_places();
  void write(std::span<const std::byte> tokens);

  shuffled_layout layout_;
  stop_flag stop_;
  std::uint64_t idx_bytes_;
  dataset_paths paths_;
  io::atomic_file bin_;
  io::atomic_file idx_;
  std::optional<checksum_writer> checksums_;
  std::optional<provenance_writer> provenance_;
  column lengths_;
  column pointers_;
  column documents_;
  column modes_;
  std::vector<std::byte> tokens_;              // buffer: small documents are written together
  std::vector<formats::source_place> places_;  // likewise
  std::int64_t pointer_ = 0;
  std::int64_t sequences_ = 0;
};

}  // namespace millrace::preprocess
