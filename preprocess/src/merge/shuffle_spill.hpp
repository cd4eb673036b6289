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

/// A document on its way through a spill: views that last as long as a call.
struct spilled_document {
  std::uint64_t turn = 0;  ///< its place in the output
  formats::source_place place;
  std::span<const std::int32_t> lengths;  ///< of its sequences
  std::span<const std::int8_t> modes;     ///< one each, or none
  std::span<const std::byte> tokens;
};

/// Brings documents into another order at the speed of the disk: they are written once to a file,
/// each into the part for its range of turns, and read back part by part. Either is done in long
/// runs, whatever the order is. For one thread.
///
/// Memory: `buffer_bytes` for all parts together, and 16 bytes for each document of one part. The
/// file has no name that lasts: it goes when this does.
class shuffle_spill {
 public:
  static constexpr std::uint64_t part_bytes = std::uint64_t{256} << 20;    // aimed at
  static constexpr std::uint64_t part_documents = std::uint64_t{1} << 20;  // at most
  static constexpr std::size_t buffer_bytes = std::size_t{64} << 20;

  /// How many turns belong to a part, if so much comes.
  static std::uint64_t turns_of_part(std::uint64_t documents, std::uint64_t bytes) noexcept;

  /// Bytes that a document takes in the file.
  static std::uint64_t size_of(std::size_t sequences, bool modes,
                               std::uint64_t token_bytes) noexcept;

  /// Opens the file.
  ///
  /// @param path        whose `.partial` the file is
  /// @param part_sizes  for each part the sum of size_of() of its documents, exactly
  /// @throws io_error
  shuffle_spill(const std::filesystem::path& path, std::uint64_t turns_of_part,
                std::span<const std::uint64_t> part_sizes, stop_flag stop = {});

  /// The room that the file will take.
  room_claim claim() noexcept { return {&file_, file_bytes_}; }

  /// Gives the file its size. Call it once, before the first add().
  /// @throws io_error
  void begin();

  /// @throws io_error  ESTALE where it is none of those that the sizes are of
  /// @throws stopped   `stop` is set; checked every few MiB, as in read().
  void add(const spilled_document& document);

  /// Calls `work(document)` for all that were added, in the order of their turns.
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
    std::uint64_t begin = 0;  // in the file
    std::uint64_t end = 0;    // of what is written
    std::uint64_t left = 0;   // for what was not added yet
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
