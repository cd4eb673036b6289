// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include <millrace/formats/detail/src_code.hpp>
#include <millrace/io/atomic_file.hpp>

#include "output/disk_room.hpp"
#include "process/stop_flag.hpp"

namespace millrace::preprocess {

/// A document in a shuffle_spill. Its spans are valid only during the call that receives the
/// document.
struct spilled_document {
  std::uint64_t turn = 0;  ///< index of the document in the output
  formats::source_place place;
  std::span<const std::int32_t> lengths;  ///< lengths of its sequences
  std::span<const std::int8_t> modes;     ///< one per sequence, or empty
  std::span<const std::byte> tokens;
  std::span<const std::byte> mask = {};  ///< one bit per token, or empty
};

/// Reorders documents at disk speed. The turn of a document is its index in the output. All turns
/// are divided into ranges of consecutive turns, and a temporary file has one part per range.
/// First, each document is written to the part for its turn. Then the parts are read one after
/// another. So reads and writes are long and sequential, whatever the order of the documents. Not
/// thread-safe.
///
/// Memory use is `buffer_bytes` for all parts together, plus 16 bytes per document of one part. The
/// destructor removes the file.
class shuffle_spill {
 public:
  static constexpr std::uint64_t part_bytes = std::uint64_t{256} << 20;    // target size of a part
  static constexpr std::uint64_t part_documents = std::uint64_t{1} << 20;  // maximum per part
  static constexpr std::size_t buffer_bytes = std::size_t{64} << 20;

  /// Returns the number of turns per part, given the total numbers of documents and bytes.
  static std::uint64_t turns_of_part(std::uint64_t documents, std::uint64_t bytes) noexcept;

  /// Returns the number of bytes that a document takes in the file.
  ///
  /// @param mask_bytes  size of its mask; 0 without masks
  static std::uint64_t size_of(std::size_t sequences, bool modes, std::uint64_t token_bytes,
                               std::uint64_t mask_bytes) noexcept;

  /// Opens the file.
  ///
  /// @param path        path of the file, without the suffix `.partial`
  /// @param part_sizes  for each part, the exact sum of size_of() over its documents
  /// @throws io_error  the file cannot be created.
  shuffle_spill(const std::filesystem::path& path, std::uint64_t turns_of_part,
                std::span<const std::uint64_t> part_sizes, stop_flag stop = {});

  /// The space that the file will take.
  room_claim claim() noexcept { return {&file_, file_bytes_}; }

  /// Sets the size of the file. Call this once, before the first add().
  ///
  /// @throws io_error  the size cannot be set.
  void begin();

  /// Writes a document to the part for its turn.
  ///
  /// @throws io_error  the file cannot be written. The error is ESTALE if the document is larger
  ///                   than the space left in its part.
  /// @throws stopped   `stop` is set. It is checked every few MiB, also in read().
  void add(const spilled_document& document);

  /// Calls `work(document)` for all added documents, in the order of their turns.
  ///
  /// @throws io_error  the file cannot be written or read. Exceptions of `work` pass through.
  template <class Work>
  void read(Work&& work) {
    flush_all();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      open_part(i);
      for (const entry& at : entries_) work(document_at(at.offset));
      close_part();
    }
  }

 private:
  struct part {
    std::uint64_t begin = 0;  // offset of the part in the file
    std::uint64_t end = 0;    // offset of the end of the written data
    std::uint64_t left = 0;   // bytes that still fit in the part
    std::vector<std::byte> pending;
  };
  struct entry {
    std::uint64_t turn;
    std::uint64_t offset;  // offset in the open part
  };

  void flush(part& to);
  void flush_all();
  void open_part(std::size_t i);
  void close_part() noexcept;
  spilled_document document_at(std::uint64_t offset) const;

  io::atomic_file file_;
  std::uint64_t file_bytes_ = 0;
  stop_flag stop_;
  std::uint64_t turns_of_part_;
  std::size_t most_pending_;
  std::vector<part> parts_;
  std::vector<entry> entries_;        // documents of the open part, sorted by turn
  std::span<const std::byte> bytes_;  // the open part, memory-mapped
  std::span<std::byte> mapping_;
};

}  // namespace millrace::preprocess
