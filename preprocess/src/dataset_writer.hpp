// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include <millrace/formats/dtype.hpp>
#include <millrace/io/atomic_file.hpp>

namespace millrace::preprocess {

/// The paths of a dataset: PREFIX.bin and PREFIX.idx.
struct dataset_paths {
  explicit dataset_paths(const std::filesystem::path& prefix) : bin(prefix), idx(prefix) {
    bin += ".bin";
    idx += ".idx";
  }
  std::filesystem::path bin;
  std::filesystem::path idx;
};

/// Writes a `.bin` and its `.idx` front to back, in constant memory.
///
/// Lengths go straight to their place in the `.idx`, behind the header; document ends (and modes)
/// go to a spill file, because where they belong is known only when all sequences are; pointers
/// are computed from the lengths at the end. Nothing shows under the final names before
/// publish(), and a destructor without it leaves no file. For one thread.
class dataset_writer {
 public:
  /// @throws io_error  the folder does not exist or refuses; another process writes this dataset.
  dataset_writer(const std::filesystem::path& prefix, formats::dtype type, bool multimodal = false);

  /// Appends sequences and the ends of documents among them.
  ///
  /// @param ids            the sequences' tokens, one behind the other
  /// @param lengths        tokens of each sequence
  /// @param document_ends  for each document: how many sequences lie between the start of this
  ///                       call and its end (those may come in later calls); ascending
  /// @param modes          one a sequence in a multimodal dataset, otherwise empty
  /// @throws io_error  e.g. ENOSPC
  void append(std::span<const std::byte> ids, std::span<const std::int32_t> lengths,
              std::span<const std::int64_t> document_ends, std::span<const std::int8_t> modes = {});

  /// Completes both files under their partial names and makes them durable.
  void finish();

  /// Gives the finished files their names: the old `.idx` goes first and the new one comes last,
  /// so that a kill at any moment leaves the old pair, the new pair, or no pair.
  void publish();

  std::int64_t sequence_count() const noexcept { return sequences_; }
  std::int64_t document_count() const noexcept { return documents_; }
  std::int64_t token_count() const noexcept {
    return static_cast<std::int64_t>(bin_.size_bytes() / formats::size_bytes(type_));
  }

 private:
  void write_pointers();
  void append_spill(io::atomic_file& spill);

  formats::dtype type_;
  dataset_paths paths_;
  io::atomic_file bin_;
  io::atomic_file idx_;
  std::optional<io::atomic_file> documents_spill_;  // both gone after finish()
  std::optional<io::atomic_file> modes_spill_;
  std::int64_t sequences_ = 0;
  std::int64_t documents_ = 0;
};

}  // namespace millrace::preprocess
