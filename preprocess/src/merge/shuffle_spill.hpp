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

/// A document in a spill, as views that are valid during a call.
struct spilled_document {
  std::uint64_t turn = 0;  ///< its index in the output
  formats::source_place place;
  std::span<const std::int32_t> lengths;  ///< of its sequences
  std::span<const std::int8_t> modes;     ///< one per sequence, or empty
  std::span<const std::byte> tokens;
};

/// Reorders documents at disk speed: each is written once to a file, into the part for its range of
/// turns, and the parts are read back one by one. Reads and writes are long and sequential,
/// whatever the order is. For one thread.
///
/// Memory: `buffer_bytes` for all parts together, and 16 bytes per document of one part. The file
/// is temporary: the destructor removes it.
class shuffle_spill {
 public:
  static constexpr std::uint64_t part_bytes = std::uint64_t{256} << 20;    // target
  static constexpr std::uint64_t part_documents = std::uint64_t{1} << 20;  // at most
  static constexpr std::size_t buffer_bytes = std::size_t{64} << 20;

  /// Number of turns per part, for totals of this many documents and bytes.
  static std::uint64_t turns_of_part(std::uint64_t documents, std::uint64_t bytes) noexcept;

  /// Bytes that a document takes in the file.
  static std::uint64_t size_of(std::size_t sequences, bool modes,
                               std::uint64_t token_bytes) noexcept;

  /// Opens the file.
  ///
  /// @param path        the file is the `.partial` of this path
  /// @param part_sizes  for each part, the exact sum of size_of() over its documents
  /// @throws io_error
  shuffle_spill(const std::filesystem::path& path, std::uint64_t turns_of_part,
                std::span<const std::uint64_t> part_sizes, stop_flag stop = {});

  /// The space that the file will take.
  room_claim claim() noexcept { return {&file_, file_bytes_}; }

  /// Gives the file its size. Call it once, before the first add().
  /// @throws io_error
  void begin();

  /// @throws io_error  with ESTALE if the document exceeds what is left of its part's size
  /// @throws stopped   `stop` is set; checked every few MiB, as in read().
  void add(const spilled_document& document);

  /// Calls `work(document)` for all added documents, in the order of their turns.
  /// @throws io_error, and what `work` throws
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
    std::uint64_t begin = 0;  // offset in the file
    std::uint64_t end = 0;    // end of what is written
    std::uint64_t left = 0;   // bytes not yet added
    std::vector<std::byte> pending;
  };
  struct entry {
    std::uint64_t turn;
    std::uint64_t offset;  // in the open part
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
  std::vector<entry> entries_;        // of the open part, by turn
  std::span<const std::byte> bytes_;  // of the open part, mapped
  std::span<std::byte> mapping_;
};

}  // namespace millrace::preprocess
